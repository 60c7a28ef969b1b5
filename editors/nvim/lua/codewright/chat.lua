-- The chat: a buffer with the conversation, and one below it for the prompt.
local session_lines = require("codewright.session").lines

local M = {}

-- How long changes are collected before the buffer is drawn, in milliseconds.
local DRAW_AFTER = 30
local PROMPT_HEIGHT = 6

local Chat = {}
Chat.__index = Chat

local function scratch(name, filetype)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, name)
  vim.bo[buffer].bufhidden = "hide"
  vim.bo[buffer].swapfile = false
  -- Texts of a model must not set options.
  vim.bo[buffer].modeline = false
  vim.bo[buffer].filetype = filetype
  vim.bo[buffer].syntax = "markdown"
  return buffer
end

-- `actions` has `send(text)` and `cancel()`.
function M.new(session, actions)
  local self = setmetatable({ session = session, counts = {} }, Chat)
  self.buffer = scratch("codewright://" .. session.id, "codewright")
  vim.bo[self.buffer].modifiable = false
  self.prompt = scratch("codewright://" .. session.id .. "/prompt", "codewright-prompt")
  local function send()
    local text = table.concat(vim.api.nvim_buf_get_lines(self.prompt, 0, -1, false), "\n")
    if text:find("%S") then
      vim.api.nvim_buf_set_lines(self.prompt, 0, -1, false, {})
      actions.send(text)
    end
  end
  vim.keymap.set("n", "<CR>", send, { buffer = self.prompt, desc = "Send the prompt" })
  vim.keymap.set({ "n", "i" }, "<C-s>", send, { buffer = self.prompt, desc = "Send the prompt" })
  for _, buffer in ipairs({ self.buffer, self.prompt }) do
    vim.keymap.set("n", "<C-c>", actions.cancel, { buffer = buffer, desc = "Cancel the turn" })
  end
  vim.bo[self.prompt].omnifunc = "v:lua.require'codewright'.complete"
  self:draw()
  return self
end

local function window_of(buffer)
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.api.nvim_win_get_buf(window) == buffer then
      return window
    end
  end
  return nil
end

-- Shows both buffers, and puts the cursor into the prompt.
function Chat:open()
  local window = window_of(self.buffer)
  if not window then
    vim.cmd("botright vsplit")
    window = vim.api.nvim_get_current_win()
    vim.api.nvim_win_set_buf(window, self.buffer)
    self:dress(window)
    vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(self.buffer), 0 })
  end
  local prompt = window_of(self.prompt)
  if not prompt then
    vim.api.nvim_set_current_win(window)
    vim.cmd("belowright " .. PROMPT_HEIGHT .. "split")
    prompt = vim.api.nvim_get_current_win()
    vim.api.nvim_win_set_buf(prompt, self.prompt)
    self:dress(prompt)
    vim.wo[prompt].winfixheight = true
  end
  vim.api.nvim_set_current_win(prompt)
end

function Chat:dress(window)
  vim.wo[window].number = false
  vim.wo[window].relativenumber = false
  vim.wo[window].signcolumn = "no"
  vim.wo[window].wrap = true
  vim.wo[window].linebreak = true
  vim.wo[window].spell = false
  -- Neovim 0.7 has no window bar; the state is then only in the status line.
  if vim.fn.exists("+winbar") == 1 and vim.api.nvim_win_get_buf(window) == self.buffer then
    vim.wo[window].winbar = "%{%v:lua.require'codewright'.statusline()%}"
  end
end

-- Draws changes soon.
function Chat:draw_soon()
  if self.is_waiting then
    return
  end
  self.is_waiting = true
  vim.defer_fn(function()
    self.is_waiting = false
    self:draw()
  end, DRAW_AFTER)
end

-- Draws the entries again from the first one that has changed.
function Chat:draw()
  local session = self.session
  local from = session.dirty_from
  if not from or not vim.api.nvim_buf_is_valid(self.buffer) then
    return
  end
  session.dirty_from = nil
  local row = 0
  for at = 1, from - 1 do
    row = row + (self.counts[at] or 0)
  end
  local lines = {}
  for at = from, #session.items do
    local own = session_lines(session.items[at])
    self.counts[at] = #own
    vim.list_extend(lines, own)
  end
  for at = #session.items + 1, #self.counts do
    self.counts[at] = nil
  end
  local followers = self:followers()
  vim.bo[self.buffer].modifiable = true
  -- A line of the buffer cannot contain a zero byte.
  for at, line in ipairs(lines) do
    lines[at] = line:gsub("%z", "�")
  end
  vim.api.nvim_buf_set_lines(self.buffer, row, -1, false, lines)
  vim.bo[self.buffer].modifiable = false
  vim.bo[self.buffer].modified = false
  for _, window in ipairs(followers) do
    vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(self.buffer), 0 })
  end
end

-- The windows whose cursor is at the end, so that they follow it.
function Chat:followers()
  local last = vim.api.nvim_buf_line_count(self.buffer)
  return vim.tbl_filter(function(window)
    return vim.api.nvim_win_get_cursor(window)[1] >= last
  end, vim.fn.win_findbuf(self.buffer))
end

-- Appends a text to the prompt.
function Chat:insert(text)
  local lines = vim.split(text, "\n", { plain = true })
  local count = vim.api.nvim_buf_line_count(self.prompt)
  local last = vim.api.nvim_buf_get_lines(self.prompt, count - 1, count, false)[1] or ""
  vim.api.nvim_buf_set_lines(self.prompt, last == "" and count - 1 or count, -1, false, lines)
  local window = window_of(self.prompt)
  if window then
    vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(self.prompt), 0 })
  end
end

function Chat:close()
  for _, buffer in ipairs({ self.buffer, self.prompt }) do
    if vim.api.nvim_buf_is_valid(buffer) then
      vim.api.nvim_buf_delete(buffer, { force = true })
    end
  end
end

return M
