// Files of the visitor's own, read in the browser: their content goes with the question, their place does not.
import { AnswerError, type Upload } from './api';
import { bytes } from './format';
import { withoutWeights } from './onnx_weights';

async function encoded(content: Uint8Array): Promise<string> {
  const reader = new FileReader();
  return await new Promise((resolve, reject) => {
    reader.onerror = () => reject(new AnswerError('The file could not be read.'));
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''));
    reader.readAsDataURL(new Blob([content as BlobPart]));
  });
}

// The server takes plain names only.
const plainName = (name: string): string => name.replaceAll(/[^A-Za-z0-9._-]/g, '_').replace(/^[._-]+/, '').slice(-100) || 'file';

// Weights stay here: a prediction needs their shapes alone.
export async function upload(files: File[], mostBytes: number): Promise<Upload> {
  const read: Upload = { files: [] };
  let total = 0;
  for (const file of files) {
    const whole = new Uint8Array(await file.arrayBuffer());
    const content = file.name.endsWith('.onnx') ? withoutWeights(whole) : whole;
    total += content.length;
    if (total > mostBytes) throw new AnswerError(`${file.name} is too large: ${bytes(content.length)} without its weights. The page takes ${bytes(mostBytes)}; use the command line for larger files.`);
    read.files.push({ name: plainName(file.name), content: await encoded(content) });
  }
  return read;
}
