-- Tests of the plugin: `nvim --headless -u NONE -i NONE --cmd "set rtp^=…" -c "luafile test/run.lua"`. Those that need
-- the program run on the stage of `editors/test/stage.sh`.
local stage = vim.env.CODEWRIGHT_STAGE
local function print(text)
  io.stdout:write("\n" .. text .. "\n")
  io.stdout:flush()
end
local passed, failed, skipped = 0, 0, 0
local DEADLINE = 60000

local function test(name, run, is_skipped)
  if is_skipped then
    skipped = skipped + 1
    print("skipped  " .. name)
    return
  end
  local ran, problem = xpcall(run, function(problem)
    return type(problem) == "table" and vim.inspect(problem) or debug.traceback(tostring(problem))
  end)
  passed, failed = passed + (ran and 1 or 0), failed + (ran and 0 or 1)
  print((ran and "ok       " or "FAILED   ") .. name .. (ran and "" or "\n" .. problem))
end

local function equal(found, expected)
  if not vim.deep_equal(found, expected) then
    error(("found %s, expected %s"):format(vim.inspect(found), vim.inspect(expected)), 2)
  end
end

local function until_true(what, check)
  if not vim.wait(DEADLINE, check, 20) then
    error("waited too long for " .. what, 2)
  end
end

local function write(path, text)
  vim.fn.mkdir(vim.fn.fnamemodify(path, ":h"), "p")
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read("*a")
  if file then
    file:close()
  end
  return text
end

local ORIGINAL = "def add(a, b):\n    return a + b\n\n\ndef minus(a, b):\n    return a - b\n"
local folder = (vim.uv or vim.loop).fs_realpath(vim.fn.fnamemodify(vim.fn.tempname(), ":h")) .. "/project"
if stage then
  folder = stage .. "/nvim"
end
write(folder .. "/src/util.py", ORIGINAL)
vim.cmd("cd " .. vim.fn.fnameescape(folder))
vim.cmd("filetype on")
vim.o.swapfile = false
vim.o.autoread = true
vim.o.columns, vim.o.lines = 160, 50

local codewright = require("codewright")
local files = require("codewright.files")
local context = require("codewright.context")
local session_module = require("codewright.session")

test("every command is documented", function()
  local help = read(vim.env.PLUGIN .. "/doc/codewright.txt")
  local count = 0
  for name in pairs(vim.api.nvim_get_commands({})) do
    if name:find("^Codewright") then
      count = count + 1
      assert(help:find("*:" .. name .. "*", 1, true), name)
    end
  end
  equal(count, 16)
end)

test("without the program, a command says so and nothing breaks", function()
  codewright.setup({ program = "codewright-missing" })
  local said = {}
  local notify = vim.notify
  vim.notify = function(text)
    said[#said + 1] = text
  end
  vim.cmd("Codewright hello")
  vim.cmd("CodewrightTerm")
  vim.cmd("CodewrightModel")
  vim.cmd("CodewrightDiff")
  vim.notify = notify
  equal(#said, 4)
  assert(said[1]:find("was not found", 1, true), said[1])
end)

test("the health report runs", function()
  vim.cmd("checkhealth codewright")
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
  assert(text:find("Neovim %d"), text)
  assert(text:find("codewright", 1, true), text)
  vim.cmd("bwipeout!")
end)

test("buffers that are not saved are read, and changes keep the other lines", function()
  local path = folder .. "/src/util.py"
  vim.cmd("edit " .. path)
  local buffer = vim.api.nvim_get_current_buf()
  vim.api.nvim_buf_set_lines(buffer, 0, 1, false, { "unsaved" })
  assert(files.read({ path = path }, folder):find("^unsaved\n"))
  equal(files.read({ path = path, line = 2, limit = 1 }, folder), "    return a + b\n")
  vim.api.nvim_win_set_cursor(0, { 6, 0 })
  files.set(path, "unsaved\nnew\nlines\n" .. ORIGINAL:gsub("^[^\n]*\n", ""))
  equal(read(path), "unsaved\nnew\nlines\n" .. ORIGINAL:gsub("^[^\n]*\n", ""))
  equal(vim.api.nvim_win_get_cursor(0)[1], 8)
  files.set(path, "no end of line")
  equal(read(path), "no end of line")
  files.set(path, ORIGINAL)
  equal(read(path), ORIGINAL)
  equal(vim.bo[buffer].modified, false)
end)

test("links out of the project, directories and relative paths are refused", function()
  local outside = vim.fn.tempname()
  write(outside, "secret")
  local uv = vim.uv or vim.loop
  uv.fs_symlink(outside, folder .. "/link.txt")
  uv.fs_symlink(outside .. "-missing", folder .. "/dangling.txt")
  uv.fs_symlink(vim.fn.fnamemodify(outside, ":h"), folder .. "/linked")
  for _, name in ipairs({ "link.txt", "dangling.txt", "linked/new.txt", "src", "missing.txt" }) do
    assert(not pcall(files.read, { path = folder .. "/" .. name }, folder), name)
  end
  for _, name in ipairs({ "link.txt", "dangling.txt", "linked/new.txt" }) do
    assert(not pcall(files.checked, folder .. "/" .. name, folder), name)
  end
  assert(not pcall(files.checked, "src/util.py", folder))
  assert(not pcall(files.checked, nil, folder))
  equal(read(outside), "secret")
  for _, name in ipairs({ "link.txt", "dangling.txt", "linked" }) do
    os.remove(folder .. "/" .. name)
  end
end)

test("the text before is computed from several differences", function()
  local path = folder .. "/steps.txt"
  write(path, "A\nb\nC\n")
  local changes = require("codewright.changes").new()
  for _, step in ipairs({ { "a", "A" }, { "c", "C" } }) do
    changes:called({
      status = "completed",
      content = { { type = "diff", path = path, oldText = step[1], newText = step[2] } },
    })
  end
  equal(changes.files[path].before, "a\nb\nc\n")
  equal(#changes:quickfix(), 2)
  equal(changes:quickfix()[2].lnum, 3)
  write(path, "a\nb\nc\n")
  equal(changes:quickfix(), {})
  equal(changes.files[path], nil)
  changes:called({ status = "completed", content = { { type = "diff", path = path, oldText = "x", newText = "y" } } })
  equal(changes:quickfix()[1].text, "changed; the text before is not known")
  for at = 1, 400 do
    changes:written("/f" .. at, "")
  end
  equal(#changes.order, 300)
end)

test("references add files, buffers and problems, and nothing outside", function()
  vim.cmd("edit src/util.py")
  local buffer = vim.api.nvim_get_current_buf()
  local blocks = context.build("see @src/util.py, @/etc/passwd @../x and me@example.org @nobody", folder)
  equal(#blocks, 2)
  equal(blocks[2].type, "resource_link")
  vim.api.nvim_buf_set_lines(buffer, 0, 1, false, { "dirty" })
  equal(context.build("@src/util.py", folder)[2].type, "resource")
  vim.cmd("edit!")
  local problem = { lnum = 1, col = 4, message = "bad", severity = vim.diagnostic.severity.ERROR, source = "lint" }
  vim.diagnostic.set(vim.api.nvim_create_namespace("test"), buffer, { problem })
  equal(context.problems(buffer, folder, 2), { "src/util.py:2:5: error: bad [lint]" })
  assert(context.build("@problems", folder)[2].text:find("bad [lint]", 1, true))
  assert(context.build("@buffers", folder)[2].text:find("- src/util.py", 1, true))
  equal(context.reference(buffer, 2, 4, folder), "@src/util.py#L2-4")
  equal(context.lines(buffer, 1, 1, folder), "src/util.py:1\n```python\ndef add(a, b):\n```")
  equal(context.fenced({ "```" }, "x y"), "````\n```\n````")
end)

test("broken updates change nothing, and a conversation is bounded", function()
  local session = session_module.new("s", folder)
  for _, update in ipairs({ {}, { sessionUpdate = "plan", entries = "x" }, { sessionUpdate = "tool_call" } }) do
    session:update(update)
  end
  equal(#session.items, 1)
  for at = 1, 2100 do
    session:push({ kind = "user", text = tostring(at) })
  end
  equal(#session.items, 2000)
  assert(#session_module.lines(session.items[1]) > 0)
end)

test("escape sequences cannot leave a paste", function()
  local sent
  local chansend, jobwait, termopen = vim.fn.chansend, vim.fn.jobwait, vim.fn.termopen
  local options
  vim.fn.termopen = function(_, given)
    options = given
    return 7
  end
  vim.fn.jobwait = function()
    return { -1 }
  end
  vim.fn.chansend = function(_, text)
    sent = text
  end
  local terminal = require("codewright.terminal")
  terminal.open("/bin/true", folder)
  terminal.send("a\27[201~\rrm -rf\n")
  vim.fn.chansend, vim.fn.jobwait, vim.fn.termopen = chansend, jobwait, termopen
  assert(options.env.CODEWRIGHT_EDITOR:find("^nvim:%d+:%x+$"))
  equal(sent, "\27[200~a [201~ rm -rf \27[201~")
  vim.cmd("close")
  package.loaded["codewright.terminal"] = nil
end)

test("the channel opens files, shows differences, and reports the selection and the problems", function()
  local uv = vim.uv or vim.loop
  local port, token = require("codewright.channel").open():match("^nvim:(%d+):(%x+)$")
  local function connect()
    local client = { socket = uv.new_tcp(), text = "", is_closed = false }
    client.socket:connect("127.0.0.1", tonumber(port), function()
      client.socket:read_start(function(_, chunk)
        client.text = client.text .. (chunk or "")
        client.is_closed = client.is_closed or chunk == nil
      end)
    end)
    return client
  end
  local function call(client, method, params)
    client.text = ""
    client.socket:write(vim.json.encode({ id = 7, method = method, params = params or vim.empty_dict() }) .. "\n")
    until_true(method, function()
      return client.is_closed or client.text:find("\n", 1, true)
    end)
    return client.is_closed and {} or vim.json.decode(client.text)
  end
  local client = connect()
  equal(call(client, "hello", { token = token }), { id = 7, result = { editor = "nvim", version = 1 } })
  vim.cmd("only | enew")
  local path = folder .. "/src/util.py"
  equal(call(client, "open", { path = path, line = 2, character = 5 }).result, vim.empty_dict())
  equal({ vim.api.nvim_buf_get_name(0), vim.api.nvim_win_get_cursor(0) }, { path, { 2, 4 } })
  vim.cmd("normal! gg0vj")
  vim.cmd("normal! " .. vim.api.nvim_replace_termcodes("<Esc>", true, false, true))
  local selection = call(client, "selection").result
  equal({ selection.path, selection.text, selection.start, selection["end"] }, {
    path, "def add(a, b):\n ", { line = 0, character = 0 }, { line = 1, character = 1 },
  })
  local problem = { lnum = 1, col = 4, message = "bad", severity = vim.diagnostic.severity.WARN }
  vim.diagnostic.set(vim.api.nvim_create_namespace("test"), 0, { problem })
  local found = call(client, "problems").result.problems
  equal({ #found, found[1].severity, found[1].message, found[1].path }, { 1, "warning", "bad", path })
  call(client, "diff", { path = path, before = "a\nb", after = "a\nc" })
  equal({ vim.wo.diff, vim.api.nvim_buf_get_lines(0, 0, -1, false) }, { true, { "a", "c" } })
  vim.cmd("tabclose")
  for _, bad in ipairs({ "/dev/null", folder, folder .. "/missing", "relative", "", 7 }) do
    assert(call(client, "open", { path = bad }).error, tostring(bad))
  end
  assert(call(client, "run").error)
  client.socket:close()
  local wrong = '{"method":"hello","params":{"token":"' .. ("0"):rep(48) .. '"}}'
  for _, line in ipairs({ '{"method":"selection"}', wrong, "GET / HTTP/1.1" }) do
    local other = connect()
    other.socket:write(line .. "\n")
    until_true("the end of " .. line, function()
      return other.is_closed
    end)
    other.socket:close()
  end
end)

-- With the program.

local choices, prompts = {}, {}
vim.ui.select = function(items, options, done)
  prompts[#prompts + 1] = options.prompt
  local wanted = table.remove(choices, 1)
  for _, item in ipairs(items) do
    if wanted and (item.name == wanted or item.value == wanted or item.sessionId == wanted) then
      return done(item)
    end
  end
  done(nil)
end

local function conversation()
  local session = codewright.active()
  return session and table.concat(vim.api.nvim_buf_get_lines(session.chat.buffer, 0, -1, false), "\n") or ""
end

local function shows(text)
  local ran = vim.wait(DEADLINE, function()
    return conversation():find(text, 1, true) ~= nil
  end, 20)
  if not ran then
    error(("waited too long for `%s` in:\n%s"):format(text, conversation():sub(-2000)), 2)
  end
end

local function idle()
  until_true("the end of the turn", function()
    return codewright.active().turns == 0
  end)
end

local function fresh()
  local old = codewright.state().active
  vim.cmd("only")
  vim.cmd("CodewrightNew")
  until_true("a session", function()
    return codewright.state().active and codewright.state().active ~= old
  end)
end

test("a prompt is answered, with the title and the cost in the status line", function()
  codewright.setup({ program = vim.env.CODEWRIGHT_BIN })
  vim.cmd("Codewright say hello")
  shows("Hello from the model")
  idle()
  assert(conversation():find("^› say hello\n\n> hmm\n"), conversation())
  until_true("the title", function()
    return codewright.statusline():find("Scripted title", 1, true)
  end)
  assert(codewright.statusline():find("ready · $0.0", 1, true), codewright.statusline())
  equal(vim.bo[codewright.active().chat.buffer].modifiable, false)
end, not stage)

test("the prompt is written in its own buffer, and completes commands and files", function()
  local chat = codewright.active().chat
  chat:open()
  equal(vim.api.nvim_get_current_buf(), chat.prompt)
  vim.api.nvim_buf_set_lines(chat.prompt, 0, -1, false, { "say hello", "again" })
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes("<CR>", true, false, true), "x", false)
  shows("› say hello\n  again")
  idle()
  equal(vim.api.nvim_buf_get_lines(chat.prompt, 0, -1, false), { "" })
  equal(codewright.complete(0, "/comp")[1].word, "/compact")
  equal(codewright.complete(0, "@util")[1].word, "@src/util.py")
end, not stage)

test("changes are in the quickfix list, compared, and taken back", function()
  fresh()
  vim.cmd("Codewright EDIT it")
  shows("Edited it.")
  idle()
  local path = folder .. "/src/util.py"
  vim.cmd("CodewrightChanges")
  local entries = vim.fn.getqflist()
  equal({ #entries, entries[1].lnum, entries[2].lnum, entries[1].text }, { 2, 2, 6, "-1 +1 lines" })
  vim.cmd("cclose")
  vim.cmd("edit " .. path)
  assert(conversation():find("+    return a + b + 0", 1, true))
  vim.cmd("CodewrightDiff")
  equal(vim.wo.diff, true)
  vim.api.nvim_win_set_cursor(0, { 2, 0 })
  vim.cmd("diffget")
  vim.cmd("write")
  vim.cmd("diffoff!")
  equal(read(path), (ORIGINAL:gsub("    return a %- b", "    # Careful.\n    return a - b")))
  equal(#codewright.state().changes:quickfix(), 1)
  vim.cmd("CodewrightReject")
  equal(read(path), ORIGINAL)
  vim.cmd("only")
end, not stage)

test("a permission request is answered with vim.ui.select, and a rejection is obeyed", function()
  fresh()
  choices, prompts = { "Allow once" }, {}
  vim.cmd("Codewright RUN it")
  shows("Ran it.")
  equal(prompts, { "Run: echo from-bash?" })
  assert(conversation():find("✓ echo from-bash\n    from-bash", 1, true), conversation())
  idle()
  fresh()
  choices = {}
  vim.cmd("Codewright DENY it")
  shows("✗ printf denied")
  idle()
  equal(read(folder .. "/denied.txt"), nil)
end, not stage)

test("a question and a plan are shown", function()
  fresh()
  choices, prompts = { "Blue" }, {}
  vim.cmd("Codewright QUIZ me")
  shows("Quizzed.")
  equal(prompts, { "Which color?" })
  assert(conversation():find("Blue", 1, true))
  idle()
  fresh()
  vim.cmd("Codewright PLAN it")
  shows("- [x] first thing\n- [-] second thing")
  idle()
end, not stage)

test("a turn is cancelled, and failures are notes", function()
  fresh()
  vim.cmd("Codewright WAIT for it")
  shows("one")
  assert(codewright.statusline():find("working", 1, true))
  vim.cmd("CodewrightCancel")
  shows("! the turn ended: cancelled")
  fresh()
  vim.cmd("Codewright BREAK it")
  shows("the model is out of order")
  idle()
end, not stage)

test("the model is chosen, and a stored session is opened with its content", function()
  fresh()
  choices = { "mock/other-model" }
  vim.cmd("CodewrightModel")
  until_true("the model", function()
    return codewright.active():option("model").currentValue == "mock/other-model"
  end)
  vim.cmd("Codewright a prompt to keep")
  shows("Hello from the model")
  idle()
  local id = codewright.state().active
  codewright.close(id)
  choices = { id }
  vim.cmd("CodewrightSessions")
  until_true("the session", function()
    return codewright.state().active == id and conversation():find("› a prompt to keep", 1, true)
  end)
  shows("Hello from the model")
end, not stage)

test("selected lines and problems become prompts", function()
  fresh()
  vim.cmd("only | edit src/util.py")
  vim.cmd("1,2CodewrightSend")
  local prompt = vim.api.nvim_buf_get_lines(codewright.active().chat.prompt, 0, -1, false)
  equal({ prompt[1], prompt[3] }, { "src/util.py:1-2", "def add(a, b):" })
  vim.cmd("only | edit src/util.py")
  local problem = { lnum = 1, col = 4, message = "bad", severity = vim.diagnostic.severity.ERROR, source = "lint" }
  vim.diagnostic.set(vim.api.nvim_create_namespace("test"), 0, { problem })
  vim.api.nvim_win_set_cursor(0, { 2, 0 })
  vim.cmd("CodewrightFix")
  shows("src/util.py:2:5: error: bad [lint]")
  idle()
end, not stage)

test("the terminal client opens in a split and gets a reference", function()
  vim.cmd("only | edit src/util.py")
  vim.cmd("CodewrightTerm")
  local terminal = require("codewright.terminal")
  local function screen()
    return table.concat(vim.api.nvim_buf_get_lines(terminal.buffer(), 0, -1, false), "\n")
  end
  until_true("the terminal client", function()
    return screen():find("Ask anything", 1, true)
  end)
  vim.cmd("wincmd p")
  vim.cmd("1,2CodewrightTermSend")
  until_true("the reference", function()
    return screen():find("@src/util.py#L1-2", 1, true)
  end)
  vim.cmd("bdelete! " .. terminal.buffer())
end, not stage)

test("the program ends with the editor's request, and its end is noticed", function()
  local rpc = codewright.state().rpc
  vim.cmd("CodewrightStop")
  until_true("the end", function()
    return rpc.is_finished and codewright.state().rpc == nil
  end)
  assert(codewright.statusline():find("stopped", 1, true))
end, not stage)

print(("%d passed, %d failed, %d skipped"):format(passed, failed, skipped))
vim.cmd(failed == 0 and "qall!" or "cquit!")
