-- The terminal client in a split, and references that are typed into its prompt.
local M = {}

local state = {}

local function is_running()
  return state.job and vim.fn.jobwait({ state.job }, 0)[1] == -1
end

-- Shows the client, or starts it.
function M.open(program, cwd)
  if is_running() and vim.api.nvim_buf_is_valid(state.buffer) then
    local window = vim.fn.win_findbuf(state.buffer)[1]
    if window then
      vim.api.nvim_set_current_win(window)
    else
      vim.cmd("botright vsplit")
      vim.api.nvim_win_set_buf(0, state.buffer)
    end
    return
  end
  vim.cmd("botright vsplit")
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_win_set_buf(0, buffer)
  local channel = require("codewright.channel").open()
  -- The program is started without a shell.
  local job = vim.fn.termopen({ program }, { cwd = cwd, env = channel and { CODEWRIGHT_EDITOR = channel } or nil })
  if job <= 0 then
    error(("`%s` could not be started"):format(program), 0)
  end
  state = { job = job, buffer = buffer }
  pcall(vim.api.nvim_buf_set_name, buffer, "codewright://terminal")
end

-- Types a text into the prompt of the client, as pasted text. Returns false if no client runs.
function M.send(text)
  if not is_running() then
    return false
  end
  -- Control characters could end the paste or press keys.
  local plain = text:gsub("[%c\127]", " ")
  vim.fn.chansend(state.job, "\27[200~" .. plain .. "\27[201~")
  return true
end

function M.buffer()
  return state.buffer
end

return M
