-- The program as a child process: JSON-RPC 2.0 over lines on its standard streams.
local uv = vim.uv or vim.loop

local M = {}

-- The longest line, in bytes. The program accepts the same.
M.MAX_LINE = 64 * 1024 * 1024
-- The deadline of a request that does not run the model, in milliseconds.
M.DEADLINE = 60000
-- The most requests that wait for an answer.
local MAX_WAITING = 256
-- How long the program may take to end after its input is closed, in milliseconds.
local END_DEADLINE = 3000

local Rpc = {}
Rpc.__index = Rpc

-- Starts the program. `handlers` has `request(method, params, respond)`, `notify(method, params)`, `log(text)` and
-- `ended(reason)`; all are called on the main loop.
function M.start(program, cwd, handlers)
  local self = setmetatable({ handlers = handlers, waiting = {}, count = 0, next = 1, pieces = {}, length = 0 }, Rpc)
  self.stdin, self.stdout, self.stderr = uv.new_pipe(false), uv.new_pipe(false), uv.new_pipe(false)
  local options = { args = { "acp" }, cwd = cwd, stdio = { self.stdin, self.stdout, self.stderr }, hide = true }
  local process, problem = uv.spawn(program, options, function(code, signal)
    self:finish(("the program ended (%s)"):format(signal ~= 0 and "signal " .. signal or "exit code " .. code))
  end)
  if not process then
    for _, pipe in ipairs({ self.stdin, self.stdout, self.stderr }) do
      pipe:close()
    end
    return nil, "the program could not be started: " .. tostring(problem)
  end
  self.process = process
  self.stdout:read_start(function(failure, chunk)
    if failure or not chunk then
      self:finish("the program closed its output")
    else
      self:receive(chunk)
    end
  end)
  self.stderr:read_start(function(_, chunk)
    if chunk then
      vim.schedule(function()
        handlers.log(chunk)
      end)
    end
  end)
  return self
end

-- Sends a request. `done(failure, result)` is called once. Without a deadline it waits until the program ends.
function Rpc:request(method, params, done, deadline)
  if self.is_finished then
    return done({ message = "the program is not running" })
  end
  if self.count >= MAX_WAITING then
    return done({ message = "too many requests wait for an answer" })
  end
  local id = self.next
  self.next = id + 1
  local entry = { done = done }
  if deadline then
    entry.timer = uv.new_timer()
    entry.timer:start(deadline, 0, function()
      self:settle(id, { message = ("`%s` was not answered within %d s"):format(method, deadline / 1000) })
    end)
  end
  self.waiting[id] = entry
  self.count = self.count + 1
  self:write({ jsonrpc = "2.0", id = id, method = method, params = params })
end

function Rpc:notify(method, params)
  self:write({ jsonrpc = "2.0", method = method, params = params })
end

function Rpc:write(message)
  if not self.is_finished then
    self.stdin:write(vim.json.encode(message) .. "\n")
  end
end

-- Ends the program: closes its input, and kills it if it does not end in time.
function Rpc:stop()
  if self.is_finished or self.is_stopping then
    return
  end
  self.is_stopping = true
  self.stdin:shutdown()
  local timer = uv.new_timer()
  timer:start(END_DEADLINE, 0, function()
    timer:close()
    if not self.is_finished then
      self.process:kill("sigkill")
    end
  end)
end

-- Kills the program at once, for when the editor ends.
function Rpc:kill()
  if not self.is_finished then
    self.process:kill("sigterm")
  end
end

function Rpc:settle(id, failure, result)
  local entry = self.waiting[id]
  if not entry then
    return
  end
  self.waiting[id] = nil
  self.count = self.count - 1
  if entry.timer then
    entry.timer:stop()
    entry.timer:close()
  end
  vim.schedule(function()
    entry.done(failure, result)
  end)
end

function Rpc:finish(reason)
  if self.is_finished then
    return
  end
  self.is_finished = true
  for _, handle in ipairs({ self.stdin, self.stdout, self.stderr, self.process }) do
    if not handle:is_closing() then
      handle:close()
    end
  end
  local ids = {}
  for id in pairs(self.waiting) do
    ids[#ids + 1] = id
  end
  for _, id in ipairs(ids) do
    self:settle(id, { message = reason })
  end
  vim.schedule(function()
    self.handlers.ended(reason, self.is_stopping == true)
  end)
end

-- Collects the pieces of a line without copying a long one for every piece.
function Rpc:receive(chunk)
  local from = 1
  while true do
    local at = chunk:find("\n", from, true)
    local piece = chunk:sub(from, at and at - 1 or nil)
    self.length = self.length + #piece
    if self.length > M.MAX_LINE then
      self.process:kill("sigkill")
      return self:finish("the program sent a line that is too long")
    end
    self.pieces[#self.pieces + 1] = piece
    if not at then
      return
    end
    local line = table.concat(self.pieces)
    self.pieces, self.length, from = {}, 0, at + 1
    if line:find("%S") then
      self:handle(line)
    end
  end
end

function Rpc:handle(line)
  local decoded, message = pcall(vim.json.decode, line, { luanil = { object = true, array = true } })
  if not decoded or type(message) ~= "table" then
    self.process:kill("sigkill")
    return self:finish("the program sent a line that is not JSON")
  end
  local method, id, params = message.method, message.id, message.params or {}
  if type(method) ~= "string" then
    if message.error then
      self:settle(id, type(message.error) == "table" and message.error or { message = "the request failed" })
    else
      self:settle(id, nil, message.result)
    end
  elseif id == nil then
    vim.schedule(function()
      self.handlers.notify(method, params)
    end)
  else
    vim.schedule(function()
      self:serve(method, params, id)
    end)
  end
end

function Rpc:serve(method, params, id)
  local is_answered = false
  local function respond(failure, result)
    if is_answered then
      return
    end
    is_answered = true
    if failure then
      self:write({ jsonrpc = "2.0", id = id, error = { code = failure.code or -32603, message = failure.message } })
    else
      self:write({ jsonrpc = "2.0", id = id, result = result })
    end
  end
  local ran, problem = pcall(self.handlers.request, method, params, respond)
  if not ran then
    respond({ message = tostring(problem) })
  end
end

return M
