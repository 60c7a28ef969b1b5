-- A session of the agent: its conversation as entries, and the updates that change it.
local M = {}

-- The most entries of a conversation that are kept.
local MAX_ITEMS = 2000
-- The longest text of an entry, and of the output of a tool, in bytes.
local MAX_TEXT = 1024 * 1024
local MAX_OUTPUT = 64 * 1024

local Session = {}
Session.__index = Session

function M.new(id, cwd)
  return setmetatable({
    id = id,
    cwd = cwd,
    title = "New session",
    items = {},
    options = {},
    commands = {},
    plan = {},
    turns = 0,
    dirty_from = 1,
    removed = 0,
  }, Session)
end

local function text_of(value, limit)
  if type(value) ~= "string" then
    return ""
  end
  return #value > limit and value:sub(1, limit) or value
end

function Session:touch(at)
  self.dirty_from = math.min(self.dirty_from or at, at)
end

-- Adds an entry. The oldest one is removed if there are too many.
function Session:push(item)
  self.items[#self.items + 1] = item
  self:touch(#self.items)
  if #self.items > MAX_ITEMS then
    table.remove(self.items, 1)
    self.removed = self.removed + 1
    self.dirty_from = 1
  end
  return item
end

function Session:note(text)
  self:push({ kind = "note", text = text })
end

local function grow(self, kind, update)
  local content = type(update.content) == "table" and update.content or {}
  local piece = content.type == "text" and text_of(content.text, MAX_TEXT) or ("[%s]"):format(text_of(content.type, 40))
  local last = self.items[#self.items]
  if last and last.kind == kind and last.id == update.messageId and last.id ~= nil then
    if #last.text < MAX_TEXT then
      last.text = last.text .. (kind == "user" and "\n" or "") .. piece
    end
    self:touch(#self.items)
  elseif piece ~= "" then
    self:push({ kind = kind, id = update.messageId, text = piece })
  end
end

local function is_for_user(update)
  local content = type(update.content) == "table" and update.content or {}
  local annotations = type(content.annotations) == "table" and content.annotations or {}
  return type(annotations.audience) ~= "table" or vim.tbl_contains(annotations.audience, "user")
end

local function output_of(content)
  local pieces = {}
  for _, entry in ipairs(content) do
    local inner = type(entry) == "table" and type(entry.content) == "table" and entry.content or {}
    if inner.type == "text" then
      pieces[#pieces + 1] = text_of(inner.text, MAX_OUTPUT)
    end
  end
  return text_of(table.concat(pieces, "\n"), MAX_OUTPUT)
end

local function tool_call(self, update)
  local id = text_of(update.toolCallId, 200)
  local at
  for index = #self.items, 1, -1 do
    if self.items[index].kind == "tool" and self.items[index].id == id then
      at = index
      break
    end
  end
  local item = at and self.items[at]
    or self:push({ kind = "tool", id = id, title = "", status = "pending", output = "" })
  self:touch(at or #self.items)
  item.title = type(update.title) == "string" and text_of(update.title, 2000) or item.title
  item.status = type(update.status) == "string" and text_of(update.status, 20) or item.status
  item.tool = type(update.kind) == "string" and text_of(update.kind, 20) or item.tool
  if type(update.content) == "table" then
    item.output = output_of(update.content)
    item.differences = vim.tbl_filter(function(entry)
      return type(entry) == "table" and entry.type == "diff"
    end, update.content)
  end
end

-- Applies an update. Returns its kind.
function Session:update(update)
  local kind = update.sessionUpdate
  if kind == "user_message_chunk" then
    if is_for_user(update) then
      grow(self, "user", update)
    end
  elseif kind == "agent_message_chunk" then
    grow(self, "agent", update)
  elseif kind == "agent_thought_chunk" then
    grow(self, "thought", update)
  elseif kind == "tool_call" or kind == "tool_call_update" then
    tool_call(self, update)
  elseif kind == "plan" and type(update.entries) == "table" then
    self.plan = update.entries
    self:plan_item()
  elseif kind == "available_commands_update" and type(update.availableCommands) == "table" then
    self.commands = update.availableCommands
  elseif kind == "config_option_update" and type(update.configOptions) == "table" then
    self.options = update.configOptions
  elseif kind == "session_info_update" then
    self.title = type(update.title) == "string" and text_of(update.title, 200) or self.title
  elseif kind == "usage_update" then
    self.usage = update
  end
  return kind
end

-- Shows the plan as one entry, which moves to the end when it changes.
function Session:plan_item()
  local lines = {}
  for _, entry in ipairs(self.plan) do
    if type(entry) == "table" then
      local mark = entry.status == "completed" and "x" or entry.status == "in_progress" and "-" or " "
      lines[#lines + 1] = ("- [%s] %s"):format(mark, text_of(entry.content, 1000))
    end
  end
  for at, item in ipairs(self.items) do
    if item.kind == "plan" then
      table.remove(self.items, at)
      self:touch(at)
      break
    end
  end
  self:push({ kind = "plan", text = table.concat(lines, "\n") })
end

-- Returns the value of an option, by its id.
function Session:option(id)
  for _, option in ipairs(self.options) do
    if type(option) == "table" and option.id == id then
      return option
    end
  end
  return nil
end

-- The cost of the session as text.
function Session:cost()
  local cost = self.usage and type(self.usage.cost) == "table" and tonumber(self.usage.cost.amount)
  return cost and (cost > 0 and cost < 0.1 and "$%.4f" or "$%.2f"):format(cost) or nil
end

-- The lines of an entry in the buffer.
function M.lines(item)
  local marks = { user = "› ", note = "! " }
  if item.kind == "tool" then
    local states = { completed = "✓", failed = "✗", in_progress = "…", pending = "…" }
    local title = (item.title ~= "" and item.title or item.tool or "tool"):gsub("\n.*", " …")
    local lines = { ("%s %s"):format(states[item.status] or "…", title) }
    if #(item.differences or {}) > 0 then
      for _, difference in ipairs(item.differences) do
        vim.list_extend(lines, M.difference(difference))
      end
    elseif item.output ~= "" then
      -- Only the end of a long output is shown.
      local output = vim.split(item.output:gsub("%s+$", ""), "\n", { plain = true })
      for at = math.max(#output - 11, 1), #output do
        lines[#lines + 1] = "    " .. output[at]
      end
    end
    lines[#lines + 1] = ""
    return lines
  end
  local prefix = marks[item.kind] or ""
  local lines = vim.split(item.text, "\n", { plain = true })
  for at, line in ipairs(lines) do
    if item.kind == "thought" then
      lines[at] = "> " .. line
    else
      lines[at] = at == 1 and prefix .. line or (prefix ~= "" and "  " or "") .. line
    end
  end
  lines[#lines + 1] = ""
  return lines
end

-- A difference in the form of a patch, without a header.
function M.difference(difference)
  local compare = vim.text and vim.text.diff or vim.diff
  local text = compare(text_of(difference.oldText, MAX_OUTPUT), text_of(difference.newText, MAX_OUTPUT), { ctxlen = 2 })
  local lines = { "```diff" }
  for _, line in ipairs(vim.split(text, "\n", { plain = true })) do
    if #lines > 60 then
      lines[#lines + 1] = "…"
      break
    elseif line ~= "" and line:sub(1, 2) ~= "@@" and line:sub(1, 1) ~= "\\" then
      lines[#lines + 1] = line
    end
  end
  lines[#lines + 1] = "```"
  return lines
end

return M
