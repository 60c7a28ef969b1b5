-- The editor channel: the terminal client opens files here and reads the selection. `editors/README.md` describes it.
local uv = vim.uv or vim.loop

local M = {}

local MAX_LINE = 8 * 1024 * 1024
local MAX_CONNECTIONS = 8
local MAX_WAITING = 16
local HELLO_DEADLINE = 5000
local MAX_SELECTION = 256 * 1024
local MAX_PROBLEMS = 200
local MAX_PROBLEM_TEXT = 2000
local SEVERITIES = { "error", "warning", "information", "hint" }

local state = { connections = 0 }

local function hex(bytes)
  return (bytes:gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end))
end

-- Compares texts of the same length in a time that does not depend on their content.
local function equal(a, b)
  local difference = #a == #b and 0 or 1
  for at = 1, math.min(#a, #b) do
    difference = difference + (a:byte(at) == b:byte(at) and 0 or 1)
  end
  return difference == 0
end

-- Returns a window that shows a file, or a new one.
local function file_window()
  local windows = vim.api.nvim_tabpage_list_wins(0)
  local previous = vim.fn.win_getid(vim.fn.winnr("#"))
  table.insert(windows, 1, previous)
  for _, window in ipairs(windows) do
    if vim.api.nvim_win_is_valid(window) and vim.bo[vim.api.nvim_win_get_buf(window)].buftype == "" then
      return window
    end
  end
  vim.cmd("topleft vnew")
  return vim.api.nvim_get_current_win()
end

local methods = {}

-- Opens a regular file, and nothing else.
function methods.open(params)
  local path = params.path
  local found = type(path) == "string" and path:sub(1, 1) == "/" and not path:find("%z") and uv.fs_stat(path)
  if not found or found.type ~= "file" then
    error("it is not a file", 0)
  end
  vim.api.nvim_set_current_win(file_window())
  vim.cmd("edit " .. vim.fn.fnameescape(path))
  local line = math.min(math.max(math.floor(tonumber(params.line) or 1), 1), vim.api.nvim_buf_line_count(0))
  local text = vim.api.nvim_buf_get_lines(0, line - 1, line, false)[1] or ""
  local column = math.min(math.max(math.floor(tonumber(params.character) or 1) - 1, 0), #text)
  vim.api.nvim_win_set_cursor(0, { line, column })
  return vim.empty_dict()
end

local function scratch(text, filetype)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].modeline = false
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(text:gsub("%z", "�"), "\n", { plain = true }))
  vim.bo[buffer].filetype = filetype
  return buffer
end

-- Shows two texts side by side in a new tab, without writing either.
function methods.diff(params)
  local before, after = params.before, params.after
  if type(params.path) ~= "string" then
    error("`path` is missing", 0)
  end
  if type(after) ~= "string" then
    local read, text = pcall(require("codewright.files").text, params.path)
    after = read and text or ""
  end
  local matched, filetype = pcall(function()
    return vim.filetype.match({ filename = params.path })
  end)
  filetype = matched and filetype or ""
  vim.cmd("tabnew")
  vim.api.nvim_win_set_buf(0, scratch(type(before) == "string" and before or "", filetype))
  vim.cmd("diffthis")
  vim.cmd("rightbelow vsplit")
  vim.api.nvim_win_set_buf(0, scratch(after, filetype))
  vim.cmd("diffthis")
  return vim.empty_dict()
end

-- A column in UTF-16 units.
local function units(line, column)
  local counted, _, utf16 = pcall(vim.str_utfindex, line, math.min(column, #line))
  return counted and utf16 or column
end

-- Returns the last selection of the file that the user saw last, or the place of the cursor.
function methods.selection()
  local window = vim.fn.win_getid(vim.fn.winnr("#"))
  local current = vim.api.nvim_get_current_buf()
  local buffer = vim.bo[current].buftype == "" and current or (window ~= 0 and vim.api.nvim_win_get_buf(window))
  local path = buffer and vim.api.nvim_buf_get_name(buffer) or ""
  if path == "" or vim.bo[buffer].buftype ~= "" then
    return vim.NIL
  end
  local from, to = vim.api.nvim_buf_get_mark(buffer, "<"), vim.api.nvim_buf_get_mark(buffer, ">")
  if from[1] == 0 or to[1] == 0 then
    local shown = vim.fn.win_findbuf(buffer)[1]
    local at = shown and vim.api.nvim_win_get_cursor(shown) or { 1, 0 }
    local line = vim.api.nvim_buf_get_lines(buffer, at[1] - 1, at[1], false)[1] or ""
    local place = { line = at[1] - 1, character = units(line, at[2]) }
    return { path = path, start = place, ["end"] = place, text = "" }
  end
  local lines = vim.api.nvim_buf_get_lines(buffer, from[1] - 1, to[1], false)
  local last = lines[#lines] or ""
  -- The second mark is on the last character, or far behind the line if whole lines are selected.
  local stop = math.min(to[2] + 1, #last)
  while stop < #last and last:byte(stop + 1) >= 128 and last:byte(stop + 1) < 192 do
    stop = stop + 1
  end
  local start = { line = from[1] - 1, character = units(lines[1] or "", from[2]) }
  local finish = { line = to[1] - 1, character = units(last, stop) }
  lines[#lines] = last:sub(1, stop)
  lines[1] = (lines[1] or ""):sub(math.min(from[2], #(lines[1] or "")) + 1)
  local text = table.concat(lines, "\n")
  local result = { path = path, start = start, ["end"] = finish, text = text }
  if #text > MAX_SELECTION then
    result.text, result.truncated = text:sub(1, MAX_SELECTION), true
  end
  return result
end

function methods.problems()
  local found = {}
  local all = vim.diagnostic.get()
  table.sort(all, function(a, b)
    return (a.severity or 1) < (b.severity or 1)
  end)
  for at = 1, math.min(#all, MAX_PROBLEMS) do
    local it = all[at]
    found[at] = {
      path = vim.api.nvim_buf_get_name(it.bufnr),
      start = { line = it.lnum, character = it.col },
      ["end"] = { line = it.end_lnum or it.lnum, character = it.end_col or it.col },
      severity = SEVERITIES[it.severity] or "error",
      message = it.message:sub(1, MAX_PROBLEM_TEXT),
      source = it.source,
    }
  end
  return { problems = found, truncated = #all > MAX_PROBLEMS or nil }
end

local function answer(request)
  local method, params = methods[request.method], type(request.params) == "table" and request.params or {}
  local id = (type(request.id) == "number" or type(request.id) == "string") and request.id or nil
  if request.method == "hello" then
    return { id = id, result = { editor = "nvim", version = 1 } }
  elseif not method then
    return { id = id, error = { message = "there is no such method" } }
  end
  local ran, result = pcall(method, params)
  if ran then
    return { id = id, result = result }
  end
  return { id = id, error = { message = type(result) == "table" and tostring(result.message) or tostring(result) } }
end

local function accept(server)
  local socket = uv.new_tcp()
  server:accept(socket)
  if state.connections >= MAX_CONNECTIONS then
    return socket:close()
  end
  state.connections = state.connections + 1
  local received, is_known, waiting = "", false, 0
  local timer = uv.new_timer()
  local function close()
    if not socket:is_closing() then
      socket:close()
      timer:stop()
      timer:close()
      state.connections = state.connections - 1
    end
  end
  timer:start(HELLO_DEADLINE, 0, close)
  local function handle(line)
    local decoded, request = pcall(vim.json.decode, line, { luanil = { object = true, array = true } })
    if not decoded or type(request) ~= "table" then
      return close()
    end
    if not is_known then
      local token = type(request.params) == "table" and request.params.token
      if request.method ~= "hello" or type(token) ~= "string" or not equal(token, state.token) then
        return close()
      end
      is_known = true
      timer:stop()
    end
    waiting = waiting + 1
    if waiting > MAX_WAITING then
      return close()
    end
    vim.schedule(function()
      local encoded, text = pcall(vim.json.encode, answer(request))
      waiting = waiting - 1
      if not socket:is_closing() then
        socket:write((encoded and text or '{"error":{"message":"the answer is not text"}}') .. "\n")
      end
    end)
  end
  socket:read_start(function(failure, chunk)
    if failure or not chunk then
      return close()
    end
    received = received .. chunk
    if #received > MAX_LINE then
      return close()
    end
    while not socket:is_closing() do
      local at = received:find("\n", 1, true)
      if not at then
        return
      end
      local line = received:sub(1, at - 1)
      received = received:sub(at + 1)
      handle(line)
    end
  end)
end

-- Opens the channel once. Returns the value of `CODEWRIGHT_EDITOR`, or nil if it cannot listen.
function M.open()
  if not state.value then
    local server = uv.new_tcp()
    state.token = hex(uv.random(24))
    if not server:bind("127.0.0.1", 0) or not server:listen(MAX_CONNECTIONS, function(failure)
      if not failure then
        accept(server)
      end
    end) then
      server:close()
      return nil
    end
    state.value = ("nvim:%d:%s"):format(server:getsockname().port, state.token)
  end
  return state.value
end

return M
