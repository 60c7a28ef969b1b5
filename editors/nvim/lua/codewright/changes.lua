-- The files that the agent has changed, with the text before its first change.
--
-- The text before is known exactly if the agent writes through the editor. Otherwise it is computed from the
-- differences in the results of tool calls.
local files = require("codewright.files")

local M = {}

-- The most changed files that are remembered.
local MAX_FILES = 300
-- The largest text that is compared, in bytes.
local MAX_COMPARED = 2 * 1024 * 1024

local Changes = {}
Changes.__index = Changes

function M.new()
  return setmetatable({ order = {}, files = {} }, Changes)
end

-- `before` is the text before, false if the file did not exist, or nil if it is not known.
function Changes:add(path, before)
  if self.files[path] then
    return
  end
  if type(before) == "string" and #before > MAX_COMPARED then
    before = nil
  end
  self.files[path] = { before = before }
  self.order[#self.order + 1] = path
  if #self.order > MAX_FILES then
    self.files[table.remove(self.order, 1)] = nil
  end
end

function Changes:forget(path)
  self.files[path] = nil
  self.order = vim.tbl_filter(function(known)
    return known ~= path
  end, self.order)
end

-- Reverses the replacement of one text by another. Returns nil if the text is not there.
local function reversed(text, difference)
  local new = difference.newText
  local at = type(new) == "string" and new ~= "" and text:find(new, 1, true)
  if not at then
    return nil
  end
  return text:sub(1, at - 1) .. (difference.oldText or "") .. text:sub(at + #new)
end

-- Notes the update of a tool call. Returns whether it changed files.
function Changes:called(update)
  if update.status ~= "completed" or type(update.content) ~= "table" then
    return false
  end
  local metadata = type(update.rawOutput) == "table" and update.rawOutput.metadata or {}
  local found = false
  for _, entry in ipairs(update.content) do
    if type(entry) == "table" and entry.type == "diff" and type(entry.path) == "string" then
      found = true
      self:stepped(entry.path, entry, metadata.exists == false)
    end
  end
  -- The files of patches, of which only the names are used.
  for _, file in ipairs(type(metadata.files) == "table" and metadata.files or {}) do
    if type(file) == "table" and type(file.filePath) == "string" then
      found = true
      self:add(file.filePath, nil)
    end
  end
  return found
end

function Changes:stepped(path, difference, is_created)
  local known = self.files[path]
  if known and known.is_exact then
    return
  end
  if is_created then
    return self:add(path, false)
  end
  local read, text = pcall(files.text, path)
  if not read or type(text) ~= "string" or #text > MAX_COMPARED then
    return self:add(path, nil)
  end
  -- All steps are reversed again, newest first, because several changes can be on the disk before the first is read.
  local steps = known and known.steps or {}
  steps[#steps + 1] = difference
  local before = text
  for at = #steps, 1, -1 do
    before = before and reversed(before, steps[at])
  end
  if not known then
    self:add(path, before)
  elseif before and known.before ~= false then
    known.before = before
  end
  self.files[path].steps = steps
end

-- Notes that the agent writes a file whose text is known.
function Changes:written(path, before)
  if not self.files[path] then
    self:add(path, before or false)
    self.files[path].is_exact = true
  end
end

-- Returns the hunks of a file: line and count before, line and count after. Lines count from 1.
function Changes:hunks(path)
  local known = self.files[path]
  local read, text = pcall(files.text, path)
  if not known or known.before == nil or not read then
    return nil
  end
  local compare = vim.text and vim.text.diff or vim.diff
  return compare(known.before or "", text or "", { result_type = "indices" })
end

-- The changes as entries of the quickfix list.
function Changes:quickfix()
  local entries = {}
  for _, path in ipairs(vim.list_slice(self.order)) do
    local hunks = self:hunks(path)
    if not hunks then
      entries[#entries + 1] = { filename = path, lnum = 1, text = "changed; the text before is not known" }
    elseif #hunks == 0 then
      self:forget(path)
    end
    for _, hunk in ipairs(hunks or {}) do
      -- A hunk that only removed lines is after the line that it names.
      local line = math.max(hunk[4] == 0 and hunk[3] + 1 or hunk[3], 1)
      entries[#entries + 1] = { filename = path, lnum = line, text = ("-%d +%d lines"):format(hunk[2], hunk[4]) }
    end
  end
  return entries
end

return M
