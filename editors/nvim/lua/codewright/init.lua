-- Codewright in Neovim: the chat over the Agent Client Protocol, the changes, and the terminal client.
local uv = vim.uv or vim.loop

local M = {}

-- The most open sessions.
local MAX_SESSIONS = 16
-- The most permission requests and questions that wait for the user.
local MAX_REQUESTS = 64
-- The most characters of the log.
local MAX_LOG = 64 * 1024

local config = {
  -- The program. A name is looked for on PATH and in ~/.cargo/bin.
  program = "codewright",
  -- Open the quickfix list after a turn that changed files.
  quickfix = false,
}

local state = { sessions = {}, order = {}, requests = {}, log = "", phase = "stopped" }

function M.setup(options)
  config = vim.tbl_extend("force", config, options or {})
end

local function notify(text, level)
  vim.notify("Codewright: " .. text, level or vim.log.levels.INFO)
end

local function message_of(problem)
  if type(problem) == "table" then
    local data = type(problem.data) == "string" and problem.data ~= "" and ": " .. problem.data or ""
    return tostring(problem.message) .. data
  end
  return tostring(problem)
end

-- Runs a command, and shows its error as a sentence.
function M.guard(run, ...)
  local ran, problem = pcall(run, ...)
  if not ran then
    notify(message_of(problem), vim.log.levels.ERROR)
  end
end

-- Returns the path of the program, or nil.
function M.program()
  local found = vim.fn.exepath(config.program)
  if found ~= "" and found:sub(1, 1) == "/" then
    return found
  end
  local cargo = vim.fn.expand("~/.cargo/bin/codewright")
  return config.program == "codewright" and vim.fn.executable(cargo) == 1 and cargo or nil
end

local function required_program()
  return M.program() or error("the program `codewright` was not found; see `:checkhealth codewright`", 0)
end

local function changes()
  state.changes = state.changes or require("codewright.changes").new()
  return state.changes
end

function M.active()
  return state.sessions[state.active]
end

local function cwd()
  local session = M.active()
  return session and session.cwd or uv.fs_realpath(vim.fn.getcwd()) or vim.fn.getcwd()
end

-- The state for a status line: what the agent does, and the cost of the session.
function M.statusline()
  local session = M.active()
  local text = state.phase
  if state.phase == "ready" and session then
    text = #state.requests > 0 and "waits for you" or session.turns > 0 and "working" or "ready"
  end
  local cost = session and session:cost()
  local title = session and " · " .. session.title or ""
  -- A percent sign begins an item of the status line.
  return (("Codewright: %s%s%s"):format(text, cost and " · " .. cost or "", title):gsub("%%", "%%%%"))
end

local function redraw()
  vim.cmd("redrawstatus!")
end

-- Permission requests and questions.

local function outcome(option)
  return { outcome = option and { outcome = "selected", optionId = option.optionId } or { outcome = "cancelled" } }
end

local VERBS = { execute = "Run", edit = "Change", delete = "Delete", read = "Read", fetch = "Fetch", search = "Search" }

-- The question for the user, in one line.
local function question(params)
  local call = type(params.toolCall) == "table" and params.toolCall or {}
  local title = tostring(call.title or "this"):gsub("%s+", " "):sub(1, 300)
  for _, option in ipairs(params.options) do
    if option.optionId ~= "once" and option.optionId ~= "always" and option.optionId ~= "reject" then
      return title
    end
  end
  return ("%s: %s?"):format(VERBS[call.kind] or "Allow", title)
end

local function ask_next()
  local request = state.requests[1]
  if not request or request.is_shown then
    return
  end
  request.is_shown = true
  redraw()
  vim.ui.select(request.options, {
    prompt = request.prompt,
    kind = "codewright",
    format_item = function(option)
      return tostring(option.name or option.optionId)
    end,
  }, function(option)
    if state.requests[1] == request then
      table.remove(state.requests, 1)
    end
    request.respond(nil, outcome(option))
    redraw()
    ask_next()
  end)
end

local function permission(params, respond)
  local session = state.sessions[params.sessionId]
  if not session or type(params.options) ~= "table" or #state.requests >= MAX_REQUESTS then
    return respond(nil, outcome(nil))
  end
  local request = { options = params.options, prompt = question(params), respond = respond, session = session.id }
  state.requests[#state.requests + 1] = request
  -- The prompt does not begin inside of another callback.
  vim.schedule(ask_next)
end

--- Returns the error of a reply to a request whose handler failed.
local function failure_of(problem)
  return type(problem) == "table" and problem or { message = tostring(problem) }
end

local function serve(method, params, respond)
  local files = require("codewright.files")
  local session = state.sessions[params.sessionId]
  if method == "session/request_permission" then
    permission(params, respond)
  elseif method == "fs/read_text_file" and session then
    local ran, result = pcall(files.read, params, session.cwd)
    respond(not ran and failure_of(result) or nil, ran and { content = result })
  elseif method == "fs/write_text_file" and session then
    local ran, problem = pcall(function()
      local path = files.checked(params.path, session.cwd)
      local before = files.text(path)
      files.set(path, params.content)
      changes():written(path, before)
    end)
    respond(not ran and failure_of(problem) or nil, vim.empty_dict())
  else
    respond({ code = -32601, message = ("`%s` is not supported"):format(method) })
  end
end

local function updated(params)
  local session, update = state.sessions[params.sessionId], params.update
  if type(update) ~= "table" then
    return
  end
  if not session then
    -- Updates of a session can arrive before the response that names it.
    state.early = state.early or {}
    if #state.early < 200 then
      table.insert(state.early, params)
    end
    return
  end
  local kind = session:update(update)
  if kind == "tool_call_update" and changes():called(update) then
    require("codewright.files").reload()
  end
  if session.chat then
    session.chat:draw_soon()
  end
  if kind == "usage_update" or kind == "session_info_update" then
    redraw()
  end
end

local function ended(reason, was_stopped)
  state.rpc = nil
  state.phase = was_stopped and "stopped" or "failed"
  state.requests = {}
  state.sessions, state.order, state.active = {}, {}, nil
  if not was_stopped then
    notify(reason, vim.log.levels.ERROR)
  end
  redraw()
end

-- Starts the program, unless it runs, and calls `ready`.
local function connect(ready)
  if state.rpc then
    if state.phase == "ready" then
      return ready()
    end
    table.insert(state.queue, ready)
    return
  end
  local rpc, problem = require("codewright.rpc").start(required_program(), cwd(), {
    request = serve,
    notify = function(method, params)
      if method == "session/update" then
        updated(params)
      end
    end,
    log = function(text)
      state.log = (state.log .. text):sub(-MAX_LOG)
    end,
    ended = ended,
  })
  if not rpc then
    error(problem, 0)
  end
  state.rpc, state.phase, state.queue = rpc, "starting", { ready }
  local version = vim.version()
  rpc:request("initialize", {
    protocolVersion = 1,
    clientCapabilities = { fs = { readTextFile = true, writeTextFile = true }, terminal = false },
    clientInfo = { name = "codewright.nvim", version = ("%d.%d"):format(version.major, version.minor) },
  }, function(failure, result)
    if failure or result.protocolVersion ~= 1 then
      rpc:stop()
      return notify(failure and message_of(failure) or "the program speaks another version", vim.log.levels.ERROR)
    end
    state.phase = "ready"
    for _, waiting in ipairs(state.queue) do
      M.guard(waiting)
    end
  end, require("codewright.rpc").DEADLINE)
end

local function call(method, params, done)
  local deadline = method ~= "session/prompt" and require("codewright.rpc").DEADLINE or nil
  state.rpc:request(method, params, function(failure, result)
    if failure then
      return notify(message_of(failure), vim.log.levels.ERROR)
    end
    M.guard(done, result or {})
  end, deadline)
end

-- Adds a session, and closes the oldest idle one if there are too many.
local function add(id, folder)
  if #state.order >= MAX_SESSIONS then
    for at, known in ipairs(state.order) do
      if state.sessions[known].turns == 0 and known ~= state.active then
        M.close(table.remove(state.order, at))
        break
      end
    end
  end
  local session = require("codewright.session").new(id, folder)
  session.chat = require("codewright.chat").new(session, {
    send = function(text)
      M.guard(M.say, text, session)
    end,
    cancel = function()
      M.cancel(session)
    end,
  })
  state.sessions[id] = session
  state.order[#state.order + 1] = id
  state.active = id
  local early = state.early or {}
  state.early = nil
  for _, params in ipairs(early) do
    updated(params)
  end
  return session
end

function M.close(id)
  local session = state.sessions[id]
  if session then
    state.sessions[id] = nil
    session.chat:close()
    state.rpc:request("session/close", { sessionId = id }, function() end, require("codewright.rpc").DEADLINE)
  end
end

-- Creates a session, shows it, and calls `done`.
function M.new(done)
  connect(function()
    local folder = uv.fs_realpath(vim.fn.getcwd()) or vim.fn.getcwd()
    call("session/new", { cwd = folder, mcpServers = {} }, function(result)
      local session = add(result.sessionId, folder)
      session.options = result.configOptions or {}
      session.chat:open()
      if done then
        done(session)
      end
    end)
  end)
end

-- Opens the chat of the active session, or a new one, and sends a prompt.
function M.open(text)
  local session = M.active()
  if not session then
    return M.new(text and function()
      M.say(text)
    end)
  end
  session.chat:open()
  if text then
    M.say(text)
  end
end

-- Sends a prompt in a session.
function M.say(text, session)
  session = session or M.active() or error("there is no session; `:Codewright` opens one", 0)
  session:push({ kind = "user", text = text })
  session.turns = session.turns + 1
  session.chat:draw()
  redraw()
  local blocks = require("codewright.context").build(text, session.cwd)
  state.rpc:request("session/prompt", { sessionId = session.id, prompt = blocks }, function(failure, result)
    session.turns = session.turns - 1
    if failure then
      local hint = failure.code == -32000 and "sign in to a provider: `codewright providers login`"
      session:note(hint or message_of(failure))
    elseif result.stopReason ~= "end_turn" then
      session:note("the turn ended: " .. tostring(result.stopReason))
    end
    session.chat:draw()
    redraw()
    M.guard(function()
      require("codewright.files").reload()
      if config.quickfix and session.turns == 0 and #changes():quickfix() > 0 then
        M.changes()
      end
    end)
  end)
end

function M.cancel(session)
  session = session or M.active()
  if not session or not state.rpc then
    return
  end
  -- A request that is shown stays until it is answered; the others are not shown any more.
  for at = #state.requests, 1, -1 do
    local request = state.requests[at]
    if request.session == session.id and not request.is_shown then
      table.remove(state.requests, at)
      request.respond(nil, outcome(nil))
    end
  end
  state.rpc:notify("session/cancel", { sessionId = session.id })
end

-- Lets the user choose a stored session, and opens it.
function M.sessions()
  connect(function()
    call("session/list", { cwd = cwd() }, function(result)
      vim.ui.select(result.sessions or {}, {
        prompt = "Open a session:",
        format_item = function(it)
          return ("%s  (%s)"):format(it.title or "Untitled", tostring(it.updatedAt or ""):sub(1, 16):gsub("T", " "))
        end,
      }, function(chosen)
        if chosen then
          M.guard(M.load, chosen)
        end
      end)
    end)
  end)
end

function M.load(chosen)
  local known = state.sessions[chosen.sessionId]
  if known then
    state.active = known.id
    return known.chat:open()
  end
  -- Its content arrives before the response.
  local session = add(chosen.sessionId, chosen.cwd)
  session.title = chosen.title or session.title
  session.chat:open()
  call("session/load", { sessionId = session.id, cwd = session.cwd, mcpServers = {} }, function(result)
    session.options = result.configOptions or {}
    session.chat:draw()
  end)
end

-- Lets the user choose a value of an option: `model`, `effort` or `mode`.
function M.choose(id)
  local session = M.active() or error("there is no session; `:Codewright` opens one", 0)
  local option = session:option(id) or error(("there is no option `%s`"):format(id), 0)
  vim.ui.select(option.options, {
    prompt = option.name .. ":",
    format_item = function(it)
      return (it.value == option.currentValue and "* " or "  ") .. (it.name or it.value)
    end,
  }, function(chosen)
    if chosen then
      local params = { sessionId = session.id, configId = id, value = chosen.value }
      call("session/set_config_option", params, function(result)
        session.options = result.configOptions or session.options
        notify(("%s: %s"):format(option.name, chosen.name or chosen.value))
      end)
    end
  end)
end

-- Lines, problems and references.

-- Runs an action with a session, which is created if there is none.
local function with_session(run)
  local session = M.active()
  if session then
    session.chat:open()
    run(session)
  else
    M.new(run)
  end
end

function M.send_lines(first, last)
  local buffer = vim.api.nvim_get_current_buf()
  with_session(function(session)
    session.chat:insert(require("codewright.context").lines(buffer, first, last, session.cwd) .. "\n")
  end)
end

function M.explain(first, last)
  local buffer = vim.api.nvim_get_current_buf()
  with_session(function(session)
    M.say("Explain this code:\n\n" .. require("codewright.context").lines(buffer, first, last, session.cwd))
  end)
end

function M.fix()
  local buffer, line = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1]
  local context = require("codewright.context")
  local found = context.problems(buffer, cwd(), line)
  if #found == 0 then
    error("this line has no problems", 0)
  end
  local first, last = math.max(line - 5, 1), math.min(line + 5, vim.api.nvim_buf_line_count(buffer))
  with_session(function(session)
    local code = context.lines(buffer, first, last, session.cwd)
    M.say(("Fix this:\n\n%s\n\n%s"):format(table.concat(found, "\n"), code))
  end)
end

-- Completes commands, files and special references in the prompt.
function M.complete(is_start, base)
  if is_start == 1 then
    local before = vim.api.nvim_get_current_line():sub(1, vim.api.nvim_win_get_cursor(0)[2])
    return (before:find("[@/][^%s@]*$") or #before + 1) - 1
  end
  local found = {}
  local session = M.active()
  if base:sub(1, 1) == "/" then
    for _, it in ipairs(session and session.commands or {}) do
      found[#found + 1] = { word = "/" .. it.name, menu = it.description }
    end
  else
    local query = base:sub(2)
    found = { { word = "@problems" }, { word = "@buffers" } }
    local pattern = "**/*" .. query:gsub("[%[%]{}*?\\,]", "") .. "*"
    for _, path in ipairs(vim.list_slice(vim.fn.globpath(cwd(), pattern, true, true), 1, 50)) do
      if vim.fn.isdirectory(path) == 0 then
        found[#found + 1] = { word = "@" .. require("codewright.context").shown(path, cwd()) }
      end
    end
  end
  return vim.tbl_filter(function(it)
    return it.word:lower():find(base:sub(2):lower(), 1, true) ~= nil
  end, found)
end

-- Changes.

function M.changes()
  local entries = changes():quickfix()
  vim.fn.setqflist({}, " ", { title = "Changes of Codewright", items = entries })
  if #entries == 0 then
    notify("there are no changes")
  else
    vim.cmd("botright copen")
  end
end

local function changed_file()
  local path = vim.api.nvim_buf_get_name(0)
  local known = changes().files[path] or error("Codewright has not changed this file", 0)
  return path, known
end

-- Compares the current file with its text before the changes. `do` takes a hunk back, and `dp` accepts it.
function M.diff()
  local path, known = changed_file()
  if known.before == nil then
    error("the text before the change is not known", 0)
  end
  local filetype = vim.bo.filetype
  vim.cmd("diffthis")
  vim.cmd("leftabove vsplit")
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].modeline = false
  vim.api.nvim_win_set_buf(0, buffer)
  local text = (known.before or ""):gsub("\n$", ""):gsub("%z", "�")
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(text, "\n", { plain = true }))
  vim.bo[buffer].filetype = filetype
  vim.bo[buffer].bufhidden = "wipe"
  vim.cmd("diffthis")
  -- What is put into the text before is accepted.
  vim.api.nvim_buf_attach(buffer, false, {
    on_lines = function()
      local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
      known.before = table.concat(lines, "\n") .. "\n"
      known.is_exact = true
      return changes().files[path] ~= known
    end,
  })
  vim.cmd("wincmd p")
end

function M.accept()
  changes():forget((changed_file()))
end

function M.reject()
  local path, known = changed_file()
  if known.before == nil then
    error("the text before the change is not known", 0)
  end
  if known.before == false then
    if vim.fn.confirm(("Delete %s?"):format(path), "&Yes\n&No", 2) ~= 1 then
      return
    end
    os.remove(path)
    vim.cmd("bdelete!")
  else
    require("codewright.files").set(path, known.before)
    require("codewright.files").reload()
  end
  changes():forget(path)
end

-- The terminal client.

function M.terminal()
  require("codewright.terminal").open(required_program(), vim.fn.getcwd())
end

function M.terminal_send(first, last, range)
  local buffer = vim.api.nvim_get_current_buf()
  local folder = uv.fs_realpath(vim.fn.getcwd()) or vim.fn.getcwd()
  local has_lines = range and range > 0
  local context = require("codewright.context")
  local text = context.reference(buffer, has_lines and first or nil, has_lines and last or nil, folder)
  if not require("codewright.terminal").send(text .. " ") then
    error("the terminal client does not run; `:CodewrightTerm` opens it", 0)
  end
end

-- Ends the program.
function M.stop()
  if state.rpc then
    state.rpc:stop()
  end
end

-- The state, for tests and for scripts of the user.
function M.state()
  return state
end

vim.api.nvim_create_autocmd("VimLeavePre", {
  group = vim.api.nvim_create_augroup("codewright", {}),
  callback = function()
    if state.rpc then
      state.rpc:kill()
    end
  end,
})

return M
