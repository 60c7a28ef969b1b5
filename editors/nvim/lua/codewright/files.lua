-- Reads and writes files for the agent through buffers, so that it sees changes that are not saved, and its changes can
-- be undone like those of the user.
local uv = vim.uv or vim.loop

local M = {}

-- The largest file that is read or written, in bytes.
M.MAX_BYTES = 32 * 1024 * 1024

local function fail(text)
  error({ code = -32602, message = text }, 0)
end

-- Returns the loaded buffer of a file, or nil.
function M.buffer(path)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local is_file = vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].buftype == ""
    if is_file and vim.api.nvim_buf_get_name(buffer) == path then
      return buffer
    end
  end
  return nil
end

local function buffer_text(buffer)
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
  return vim.bo[buffer].endofline and text .. "\n" or text
end

local function disk_text(path)
  local found = uv.fs_stat(path)
  if not found then
    return nil
  end
  if found.type ~= "file" then
    fail(("`%s` is not a regular file"):format(path))
  end
  if found.size > M.MAX_BYTES then
    fail(("`%s` is larger than %d MiB"):format(path, M.MAX_BYTES / 1048576))
  end
  local file = io.open(path, "rb")
  if not file then
    fail(("`%s` cannot be read"):format(path))
  end
  local text = file:read("*a")
  file:close()
  return text
end

-- Returns the present text of a file, also if it is not saved, or nil if there is no file.
function M.text(path)
  local buffer = M.buffer(path)
  if buffer and vim.bo[buffer].modified then
    return buffer_text(buffer)
  end
  return disk_text(path)
end

function M.is_inside(root, path)
  return path == root or path:sub(1, #root + 1) == root .. "/"
end

-- Resolves the links of a path of which the last parts may be missing.
local function real(path)
  local found = uv.fs_realpath(path)
  if found then
    return found
  end
  if uv.fs_lstat(path) then
    fail(("`%s` is a link to a missing file"):format(path))
  end
  local parent = vim.fn.fnamemodify(path, ":h")
  if parent == path then
    return path
  end
  return real(parent) .. "/" .. vim.fn.fnamemodify(path, ":t")
end

-- Checks the path of the agent. Its permission rules have decided about the path as it is written, so a path inside the
-- project must not be a link to a file outside.
function M.checked(path, root)
  if type(path) ~= "string" or path:sub(1, 1) ~= "/" or path:find("%z") then
    fail("the path is not absolute")
  end
  local plain = vim.fn.simplify(path)
  if M.is_inside(root, plain) and not M.is_inside(real(root), real(plain)) then
    fail(("`%s` is a link out of the project"):format(path))
  end
  return plain
end

-- Reads a file for the agent. `line` counts from 1.
function M.read(params, root)
  local path = M.checked(params.path, root)
  local text = M.text(path)
  if not text then
    error({ code = -32002, message = ("`%s` does not exist"):format(path) }, 0)
  end
  if not params.line and not params.limit then
    return text
  end
  local found, at = {}, 0
  local first = math.max(tonumber(params.line) or 1, 1)
  local last = params.limit and first + tonumber(params.limit) - 1 or math.huge
  for line in text:gmatch("[^\n]*\n?") do
    at = at + 1
    if line ~= "" and at >= first and at <= last then
      found[#found + 1] = line
    end
  end
  return table.concat(found)
end

-- Replaces the text of a buffer. Only the lines that differ are changed, so marks and cursors keep their places.
local function replace(buffer, text)
  local has_end = text:sub(-1) == "\n"
  local new = vim.split(has_end and text:sub(1, -2) or text, "\n", { plain = true })
  local old = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  local first = 1
  while first <= #old and first <= #new and old[first] == new[first] do
    first = first + 1
  end
  local tail = 0
  while tail < #old - first + 1 and tail < #new - first + 1 and old[#old - tail] == new[#new - tail] do
    tail = tail + 1
  end
  local lines = {}
  for at = first, #new - tail do
    lines[#lines + 1] = new[at]
  end
  vim.api.nvim_buf_set_lines(buffer, first - 1, #old - tail, false, lines)
  vim.bo[buffer].endofline = has_end
  vim.bo[buffer].fixendofline = false
end

-- Writes a text to a file, through its buffer if there is one.
function M.set(path, text)
  if #text > M.MAX_BYTES then
    fail(("the text is larger than %d MiB"):format(M.MAX_BYTES / 1048576))
  end
  local buffer = M.buffer(path)
  if buffer and vim.bo[buffer].modifiable and (vim.bo[buffer].modified or buffer_text(buffer) == disk_text(path)) then
    replace(buffer, text)
    vim.api.nvim_buf_call(buffer, function()
      vim.cmd("silent keepalt write!")
    end)
    return
  end
  vim.fn.mkdir(vim.fn.fnamemodify(path, ":h"), "p")
  local file, problem = io.open(path, "wb")
  if not file then
    fail(tostring(problem))
  end
  file:write(text)
  file:close()
  M.reload()
end

-- Reads files again that have changed on the disk and have no changes in their buffers.
function M.reload()
  vim.cmd("silent! checktime")
end

return M
