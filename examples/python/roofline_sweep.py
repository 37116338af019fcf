"""How close a matrix multiply comes to the roofline as its rows grow, and how sure that is."""

import foretoken

DEVICE = "h100_sxm"

print(f"GEMM of M x 8192 x 8192 in bf16 on {DEVICE}")
print(f"{'M':>6} {'us':>9} {'90% interval':>19} {'of roofline':>12}  bound by")
for rows in (1, 16, 64, 256, 1024, 4096):
    kernel = foretoken.kernel("gemm", device=DEVICE, m=rows, n=8192, k=8192)
    seconds = kernel["estimate"]["seconds"]
    interval = f"{seconds['low'] * 1e6:.1f} to {seconds['high'] * 1e6:.1f}"
    bound = kernel["estimate"]["bound"]
    print(f"{rows:6} {seconds['value'] * 1e6:9.1f} {interval:>19} {kernel['efficiency']:12.0%}  {bound}")
