// `foretoken endpoint` as the official client sees it. Opt-in: docs/endpoint.md says how to run it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, test } from "node:test";
import OpenAI from "openai";

const program = process.env.FORETOKEN ?? "../../build/foretoken";
const messages = [{ role: "user", content: "Tell me about tokens." }];
let server, client;

before(async () => {
  server = spawn(program, ["endpoint", "--model", "Llama-3.1-8B", "--device", "h100_sxm", "--port", "0",
    "--time-scale", "10", "--served-model-name", "simulated"]);
  const port = await new Promise((found) => {
    server.stderr.on("data", (text) => found(/:(\d+)\n/.exec(text)[1]));
  });
  client = new OpenAI({ apiKey: "none", baseURL: `http://127.0.0.1:${port}/v1` });
});

after(() => server.kill("SIGTERM"));

test("a chat is answered whole", async () => {
  const answer = await client.chat.completions.create({ model: "simulated", messages, max_tokens: 8, ignore_eos: true });
  assert.equal(answer.object, "chat.completion");
  assert.equal(answer.choices[0].message.role, "assistant");
  assert.equal(answer.choices[0].message.content.trim().split(" ").length, 8);
  assert.equal(answer.choices[0].finish_reason, "length");
  assert.equal(answer.usage.completion_tokens, 8);
});

test("a chat is streamed, a word a chunk, with its usage", async () => {
  const stream = await client.chat.completions.create({
    model: "simulated", messages, max_tokens: 8, ignore_eos: true, stream: true, stream_options: { include_usage: true },
  });
  const words = [];
  let usage;
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta.content) words.push(chunk.choices[0].delta.content);
    usage = chunk.usage ?? usage;
  }
  assert.equal(words.length, 8);
  assert.equal(usage.completion_tokens, 8);
  const whole = await client.chat.completions.create({ model: "simulated", messages, max_tokens: 8, ignore_eos: true });
  assert.equal(words.join(""), whole.choices[0].message.content);
});

test("a response is answered whole and streamed", async () => {
  const question = { model: "simulated", instructions: "Be brief.", input: "Tell me about tokens.", max_output_tokens: 8, ignore_eos: true };
  const whole = await client.responses.create(question);
  assert.equal(whole.status, "incomplete");
  assert.equal(whole.incomplete_details.reason, "max_output_tokens");
  assert.equal(whole.output_text.trim().split(" ").length, 8);
  assert.equal(whole.usage.output_tokens, 8);
  let text = "", last;
  for await (const event of await client.responses.create({ ...question, stream: true })) {
    if (event.type === "response.output_text.delta") text += event.delta;
    last = event;
  }
  assert.equal(text, whole.output_text);
  assert.equal(last.type, "response.incomplete");
  assert.equal(last.response.output[0].content[0].text, text);
  // The client's own reader of streams puts the same response together.
  const read = await client.responses.stream(question).finalResponse();
  assert.equal(read.output_text, text);
});

test("completions take token ids and several prompts", async () => {
  const answer = await client.completions.create({ model: "simulated", prompt: [[1, 2, 3], [4, 5]], max_tokens: 4 });
  assert.equal(answer.choices.length, 2);
  assert.equal(answer.usage.prompt_tokens, 5);
});

test("embeddings come as the client asks for them", async () => {
  const answer = await client.embeddings.create({ model: "simulated", input: ["a", "b"] });
  assert.equal(answer.data.length, 2);
  assert.equal(answer.data[0].embedding.length, 4096);
  assert.ok(answer.data[0].embedding.every((value) => value >= -1 && value <= 1));
});

test("models are listed", async () => {
  const models = await client.models.list();
  assert.equal(models.data[0].id, "simulated");
});

test("errors arrive as the client's own", async () => {
  await assert.rejects(client.chat.completions.create({ model: "other", messages }), OpenAI.NotFoundError);
  await assert.rejects(client.chat.completions.create({ model: "simulated", messages: [] }), OpenAI.BadRequestError);
});

test("a stream that is given up frees its engine", async () => {
  const stream = await client.chat.completions.create({
    model: "simulated", messages, max_tokens: 50000, ignore_eos: true, stream: true,
  });
  for await (const chunk of stream) if (chunk.choices[0].delta.content) break;
  let running = 1;
  for (let i = 0; i < 100 && running > 0; ++i) {
    const metrics = await (await fetch(new URL("/metrics", client.baseURL))).text();
    running = Number(/vllm:num_requests_running\{[^}]*\} (\d+)/.exec(metrics)[1]);
  }
  assert.equal(running, 0);
});

const weather = {
  type: "object", additionalProperties: false, required: ["city", "days"],
  properties: { city: { type: "string" }, days: { type: "integer", minimum: 1, maximum: 7 } },
};

test("a required tool is called, whole and streamed", async () => {
  const question = {
    model: "simulated", messages, max_tokens: 60, tool_choice: "required",
    tools: [{ type: "function", function: { name: "weather", parameters: weather } }],
  };
  const [choice] = (await client.chat.completions.create(question)).choices;
  assert.equal(choice.finish_reason, "tool_calls");
  const { city, days } = JSON.parse(choice.message.tool_calls[0].function.arguments);
  assert.ok(city.length > 0 && days >= 1 && days <= 7);
  const streamed = await client.chat.completions.stream(question).finalChatCompletion();
  assert.equal(streamed.choices[0].message.tool_calls[0].function.arguments, choice.message.tool_calls[0].function.arguments);
});

test("a response follows a schema", async () => {
  const answer = await client.responses.create({
    model: "simulated", input: "Weather?", max_output_tokens: 60,
    text: { format: { type: "json_schema", name: "weather", schema: weather, strict: true } },
  });
  assert.equal(answer.status, "completed");
  assert.deepEqual(Object.keys(JSON.parse(answer.output_text)).sort(), ["city", "days"]);
});
