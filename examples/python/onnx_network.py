"""An ONNX network: what it holds, and how long a systolic array takes for each of its layers."""

from pathlib import Path

import foretoken

network = Path(__file__).parents[2] / "data" / "edge" / "networks" / "mobilenet_v2.onnx"
print(foretoken.models(str(network), bind="batch=1"))
print(foretoken.systolic(array="32x32", network=network, bind="batch=1"))
