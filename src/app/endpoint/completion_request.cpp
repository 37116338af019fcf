#include "app/endpoint/completion_request.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"

namespace foretoken {
namespace {

constexpr const char* body_name = "request body";
constexpr Range<int64_t> token_counts{.least = 1, .most = int64_t{1} << 40};

std::vector<TokenId> tokens_of_text(const std::string& text) {
  std::vector<TokenId> tokens;
  add_tokens(text, tokens);
  return tokens;
}

std::vector<TokenId> tokens_of_ids(const JsonView& ids) {
  std::vector<TokenId> tokens;
  for (const JsonView& id : ids.items()) {
    tokens.push_back(static_cast<TokenId>(id.integer({.least = 0, .most = std::numeric_limits<TokenId>::max()})));
  }
  return tokens;
}

bool holds_numbers(const JsonView& list) {
  const std::vector<JsonView> items = list.items();
  return !items.empty() && items.front().is_number();
}

// A text, token ids, or a list of either.
std::vector<std::vector<TokenId>> read_prompts(const JsonView& prompt) {
  if (prompt.is(Json::Kind::string)) return {tokens_of_text(prompt.string())};
  if (!prompt.is(Json::Kind::array)) prompt.fail("a text, token ids, or a list of either");
  if (holds_numbers(prompt)) return {tokens_of_ids(prompt)};
  std::vector<std::vector<TokenId>> prompts;
  for (const JsonView& one : prompt.items()) {
    prompts.push_back(one.is(Json::Kind::array) ? tokens_of_ids(one) : tokens_of_text(one.string()));
  }
  if (prompts.empty()) prompt.fail("at least one prompt");
  return prompts;
}

void add_content(const JsonView& content, std::vector<TokenId>& tokens) {
  if (content.is(Json::Kind::string)) return add_tokens(content.string(), tokens);
  if (!content.is(Json::Kind::array)) content.fail("a text or a list of parts");
  for (const JsonView& part : content.items()) {
    const std::string type = part.at("type").string();
    // The names of /v1/chat/completions, and of /v1/responses.
    const bool is_text = type == "text" || type == "input_text" || type == "output_text";
    if (!is_text && type != "refusal") part.at("type").fail("text: other parts are not simulated");
    add_tokens(part.at(is_text ? "text" : type).string(), tokens);
  }
}

std::string known_role(const JsonView& role) {
  constexpr std::string_view known[] = {"system", "developer", "user", "assistant", "tool", "function"};
  std::string name = role.string();
  if (std::find(std::begin(known), std::end(known), name) == std::end(known)) {
    role.fail(fmt::format("one of {}", fmt::join(known, ", ")));
  }
  return name;
}

// A token for its role, its text, a token for its end; then the answer's role.
std::vector<TokenId> chat_tokens(const JsonView& messages) {
  std::vector<TokenId> tokens;
  for (const JsonView& message : messages.items()) {
    tokens.push_back(special_token(known_role(message.at("role"))));
    if (const auto content = message.find("content")) add_content(*content, tokens);
    if (const auto calls = message.find("tool_calls")) {
      for (const JsonView& call : calls->items()) add_tokens(call.at("function").at("arguments").string(), tokens);
    }
    tokens.push_back(special_token("<end>"));
  }
  if (tokens.empty()) messages.fail("at least one message");
  tokens.push_back(special_token("assistant"));
  return tokens;
}

// The input of /v1/responses: a text, or messages; instructions come before it.
std::vector<TokenId> response_tokens(const JsonView& body) {
  std::vector<TokenId> tokens;
  const auto add_message = [&](std::string_view role, const JsonView& content) {
    tokens.push_back(special_token(role));
    add_content(content, tokens);
    tokens.push_back(special_token("<end>"));
  };
  if (const auto instructions = body.find("instructions")) {
    if (!instructions->is(Json::Kind::string)) instructions->fail("a text");
    add_message("system", *instructions);
  }
  const JsonView input = body.at("input");
  if (input.is(Json::Kind::string)) {
    add_message("user", input);
  } else {
    if (!input.is(Json::Kind::array) || input.items().empty()) input.fail("a text, or at least one message");
    for (const JsonView& item : input.items()) {
      const auto type = item.find("type");
      const std::string kind = type ? type->string() : "message";
      if (kind == "message") {
        add_message(known_role(item.at("role")), item.at("content"));
      } else if (kind == "function_call") {
        add_message("assistant", item.at("arguments"));
      } else if (kind == "function_call_output") {
        add_message("tool", item.at("output"));
      } else {
        type->fail("message, function_call or function_call_output: other items are not simulated");
      }
    }
  }
  tokens.push_back(special_token("assistant"));
  return tokens;
}

bool asks(const JsonView& body, std::string_view field) {
  const auto found = body.find(field);
  if (!found) return false;
  return found->is(Json::Kind::boolean) ? found->boolean() : true;
}

// true, false, 1 or 0, as OpenAI's and vLLM's servers read them; absent = false.
bool flag(const JsonView& body, std::string_view field) {
  const auto found = body.find(field);
  if (!found) return false;
  if (found->is(Json::Kind::boolean)) return found->boolean();
  if (!found->is_number()) found->fail("true or false, without quotes");
  return found->integer({.least = 0, .most = 1}) == 1;
}

void refuse(const JsonView& body, std::string_view field, const char* why) {
  if (asks(body, field)) body.at(field).fail(why);
}

// Sampling changes no speed; values that an engine refuses are refused here too.
void check_sampling(const JsonView& body) {
  constexpr struct {
    const char* name = nullptr;
    Range<double> allowed;
  } numbers[] = {{"temperature", {.least = 0, .most = 2}},
                 {"top_p", {.least = 0, .most = 1}},
                 {"min_p", {.least = 0, .most = 1}},
                 {"presence_penalty", {.least = -2, .most = 2}},
                 {"frequency_penalty", {.least = -2, .most = 2}},
                 {"repetition_penalty", {.least = 0, .most = 1e6}}};
  for (const auto& [name, allowed] : numbers) {
    if (const auto value = body.find(name)) value->number(allowed);
  }
  for (const char* name : {"seed", "top_k"}) {
    if (const auto value = body.find(name)) value->integer();
  }
}

constexpr size_t most_stops = 64, longest_stop = 1024;  // texts, bytes

void read_stop(const JsonView& stop, std::vector<std::string>& texts) {
  if (stop.is(Json::Kind::string)) {
    texts.push_back(stop.string());
  } else {
    for (const JsonView& one : stop.items()) texts.push_back(one.string());
  }
  if (texts.size() > most_stops) stop.fail(fmt::format("at most {} stop strings", most_stops));
  for (const std::string& text : texts) {
    if (text.empty() || text.size() > longest_stop)
      stop.fail(fmt::format("stop strings of 1 to {} bytes", longest_stop));
  }
}

std::shared_ptr<const AnswerSchema> shared_schema(const JsonView& schema) {
  return std::make_shared<const AnswerSchema>(read_answer_schema(schema));
}

// `in`: where a schema has its name and body: the format itself in /v1/responses.
void read_format(const JsonView& format, const char* in, CompletionRequest& request) {
  const std::string type = format.at("type").string();
  if (type == "json_object") {
    request.form = std::make_shared<const AnswerSchema>(any_json_object());
  } else if (type == "json_schema") {
    const JsonView holder = *in == '\0' ? format : format.at(in);
    request.form = shared_schema(holder.at("schema"));
  } else if (type != "text") {
    format.at("type").fail("text, json_object or json_schema");
  }
  request.text_format = format.value();
}

// A tool's name and parameters stand in its member `function`, but in /v1/responses in the tool itself.
JsonView function_of(const JsonView& tool, CompletionKind kind) {
  if (tool.at("type").string() != "function") tool.at("type").fail("function: other tools are not simulated");
  return kind == CompletionKind::response ? tool : tool.at("function");
}

CallableTool read_tool(const JsonView& function) {
  CallableTool tool{.name = function.at("name").string()};
  const Json nothing = Json::object({{"type", "object"}});
  const auto parameters = function.find("parameters");
  if (parameters && parameters->is(Json::Kind::object) && !parameters->value().members().empty()) {
    tool.arguments = shared_schema(*parameters);
    if (!tool.arguments->makes_objects()) parameters->fail("a schema of an object");
  } else {
    tool.arguments = shared_schema(JsonView(nothing, "parameters"));
  }
  return tool;
}

void read_tool_choice(const JsonView& choice, const std::vector<JsonView>& functions, CompletionRequest& request) {
  request.tool_choice = choice.value();
  std::optional<std::string> name;
  if (choice.is(Json::Kind::string)) {
    const std::string mode = choice.string();
    if (mode == "auto" || mode == "none") return;
    if (mode != "required") choice.fail(R"(auto, none, required or {"type": "function", "function": {"name": ...}})");
  } else {
    if (choice.at("type").string() != "function") choice.at("type").fail("function: other choices are not simulated");
    const JsonView holder = request.kind == CompletionKind::response ? choice : choice.at("function");
    name = holder.at("name").string();
  }
  for (const JsonView& function : functions) {
    if (!name || function.at("name").string() == *name) request.must_call.push_back(read_tool(function));
  }
  if (request.must_call.empty()) choice.fail(name ? "a function that \"tools\" lists" : "\"tools\" to choose from");
}

// What the answer must look like. Tools stand at the front of the prompt, as chat templates put them.
void read_forms(const JsonView& body, CompletionRequest& request) {
  for (const char* field : {"guided_regex", "guided_choice", "guided_grammar", "structured_outputs"}) {
    refuse(body, field, "nothing: only JSON schemas are simulated. Use response_format");
  }
  for (const char* field : {"functions", "function_call"}) refuse(body, field, "nothing: use tools and tool_choice");
  if (const auto format = body.find("response_format")) read_format(*format, "json_schema", request);
  if (const auto schema = body.find("guided_json")) request.form = shared_schema(*schema);
  std::vector<JsonView> functions;
  if (const auto tools = body.find("tools")) {
    for (const JsonView& tool : tools->items()) functions.push_back(function_of(tool, request.kind));
    for (const JsonView& function : functions) {
      if (function.at("name").string().empty()) function.at("name").fail("a name");
    }
    request.tools = tools->value();
    std::vector<TokenId> front;
    if (!functions.empty()) add_tokens(request.tools.dump(0), front);
    for (std::vector<TokenId>& prompt : request.prompts) prompt.insert(prompt.begin(), front.begin(), front.end());
  }
  if (const auto choice = body.find("tool_choice")) read_tool_choice(*choice, functions, request);
}

// Documents are made before the first token: their size is bounded.
void check_form_sizes(const JsonView& body, const CompletionRequest& request) {
  int64_t bytes = request.form ? request.form->shortest_bytes() : 0;
  for (const CallableTool& tool : request.must_call) bytes = std::max(bytes, tool.arguments->shortest_bytes());
  if (bytes * static_cast<int64_t>(request.prompts.size()) * request.samples > most_form_bytes) {
    body.fail(fmt::format("fewer answers: their shortest JSON may have at most {} bytes in total", most_form_bytes));
  }
}

void read_generation(const JsonView& body, CompletionRequest& request) {
  check_sampling(body);
  read_forms(body, request);
  if (const auto stop = body.find("stop")) read_stop(*stop, request.stop);
  refuse(body, "logprobs", "nothing: probabilities are not simulated");
  refuse(body, "echo", "nothing: the prompt is not sent back");
  refuse(body, "use_beam_search", "nothing: beams are not simulated");
  if (const auto n = body.find("n")) request.samples = n->integer({.least = 1, .most = most_choices});
  if (const auto best = body.find("best_of")) {
    if (best->integer() != request.samples) best->fail("the same as n: answers are not ranked");
  }
  if (const auto most = body.find("max_completion_tokens")) {
    request.max_tokens = most->integer(token_counts);
  } else if (const auto older = body.find("max_tokens")) {
    request.max_tokens = older->integer(token_counts);
  }
  if (const auto least = body.find("min_tokens")) request.min_tokens = least->integer({.least = 0});
  if (const auto priority = body.find("priority")) {
    request.priority = static_cast<int32_t>(priority->integer({.least = -1'000'000, .most = 1'000'000}));
  }
  request.ignore_eos = flag(body, "ignore_eos");
  request.stream = flag(body, "stream");
  if (const auto options = body.find("stream_options")) {
    if (!request.stream) options->fail("only with \"stream\": true");
    request.include_usage = flag(*options, "include_usage");
  }
}

void read_response(const JsonView& body, CompletionRequest& request) {
  check_sampling(body);
  refuse(body, "response_format", "nothing: /v1/responses takes text.format");
  for (const char* field : {"max_tokens", "max_completion_tokens"}) {
    refuse(body, field, "nothing: /v1/responses takes max_output_tokens");
  }
  refuse(body, "n", "nothing: /v1/responses gives one answer");
  read_forms(body, request);
  if (const auto text = body.find("text")) {
    if (const auto format = text->find("format")) read_format(*format, "", request);
  }
  refuse(body, "previous_response_id", "nothing: responses are not kept. Send the whole conversation as input");
  refuse(body, "background", "false: responses are not kept");
  if (const auto most = body.find("max_output_tokens")) request.max_tokens = most->integer(token_counts);
  request.ignore_eos = flag(body, "ignore_eos");
  request.stream = flag(body, "stream");
}

void read_embedding(const JsonView& body, CompletionRequest& request) {
  if (const auto dimensions = body.find("dimensions")) {
    request.dimensions = dimensions->integer({.least = 1, .most = 65'536});
  }
  if (const auto format = body.find("encoding_format")) {
    const std::string name = format->string();
    if (name != "float" && name != "base64") format->fail("float or base64");
    request.base64 = name == "base64";
  }
}

}  // namespace

CompletionRequest read_completion_request(CompletionKind kind, const std::string& body) {
  const Json json = parse_json(body, body_name);
  const JsonView view(json, body_name);
  if (!view.is(Json::Kind::object)) view.fail("an object");
  CompletionRequest request{.kind = kind};
  if (const auto model = view.find("model")) request.model = model->string();
  switch (kind) {
    case CompletionKind::chat:
      request.prompts.push_back(chat_tokens(view.at("messages")));
      read_generation(view, request);
      break;
    case CompletionKind::text:
      request.prompts = read_prompts(view.at("prompt"));
      read_generation(view, request);
      if (!request.max_tokens) request.max_tokens = 16;  // OpenAI's and vLLM's default for this route
      break;
    case CompletionKind::response:
      request.prompts.push_back(response_tokens(view));
      read_response(view, request);
      break;
    case CompletionKind::embedding:
      request.prompts = read_prompts(view.at("input"));
      read_embedding(view, request);
      break;
  }
  if (request.max_tokens && request.min_tokens > *request.max_tokens) {
    view.at("min_tokens").fail(fmt::format("at most {} (max_tokens)", *request.max_tokens));
  }
  if (static_cast<int64_t>(request.prompts.size()) * request.samples > most_choices) {
    view.fail(fmt::format("at most {} answers from one request", most_choices));
  }
  check_form_sizes(view, request);
  return request;
}

std::vector<TokenId> read_tokenize_request(const std::string& body) {
  const Json json = parse_json(body, body_name);
  const JsonView view(json, body_name);
  if (const auto messages = view.find("messages")) return chat_tokens(*messages);
  return tokens_of_text(view.at("prompt").string());
}

std::vector<TokenId> read_detokenize_request(const std::string& body) {
  const Json json = parse_json(body, body_name);
  return tokens_of_ids(JsonView(json, body_name).at("tokens"));
}

}  // namespace foretoken
