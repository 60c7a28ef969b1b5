-- References of a prompt to the editor, and prompts about lines and problems.
local files = require("codewright.files")

local M = {}

-- The most references of a prompt that are resolved, and the most problems that are listed.
local MAX_MENTIONS = 20
local MAX_PROBLEMS = 100
local SEVERITIES = { "error", "warning", "information", "hint" }

-- The path of a file as a person reads it: relative to the directory of the session if it is inside.
function M.shown(path, cwd)
  return files.is_inside(cwd, path) and path ~= cwd and path:sub(#cwd + 2) or path
end

-- Code in a fence that the code itself cannot close.
function M.fenced(lines, language)
  local longest = 2
  for _, line in ipairs(lines) do
    for run in line:gmatch("`+") do
      longest = math.max(longest, #run)
    end
  end
  local fence = ("`"):rep(longest + 1)
  return fence .. (language:match("^[%w+-]*$") or "") .. "\n" .. table.concat(lines, "\n") .. "\n" .. fence
end

-- The lines of a buffer as a text with their place.
function M.lines(buffer, first, last, cwd)
  local path = vim.api.nvim_buf_get_name(buffer)
  local name = path ~= "" and M.shown(path, cwd) or "a buffer without a name"
  local lines = vim.api.nvim_buf_get_lines(buffer, first - 1, last, false)
  local range = first == last and tostring(first) or first .. "-" .. last
  return ("%s:%s\n%s"):format(name, range, M.fenced(lines, vim.bo[buffer].filetype))
end

-- A reference to lines, as the terminal client and the chat understand it.
function M.reference(buffer, first, last, cwd)
  local name = "@" .. M.shown(vim.api.nvim_buf_get_name(buffer), cwd)
  if not first then
    return name
  end
  return first == last and ("%s#L%d"):format(name, first) or ("%s#L%d-%d"):format(name, first, last)
end

-- Problems as lines, in the usual form of compilers. Without a buffer: those of all buffers.
function M.problems(buffer, cwd, line)
  local found = {}
  for _, it in ipairs(vim.diagnostic.get(buffer, line and { lnum = line - 1 } or nil)) do
    if #found == MAX_PROBLEMS then
      found[#found + 1] = "More problems are left out."
      break
    end
    local name = M.shown(vim.api.nvim_buf_get_name(it.bufnr or buffer), cwd)
    local source = it.source and (" [%s]"):format(it.source) or ""
    local severity = SEVERITIES[it.severity] or "error"
    found[#found + 1] = ("%s:%d:%d: %s: %s%s"):format(name, it.lnum + 1, it.col + 1, severity, it.message, source)
  end
  return found
end

local function resource(path, cwd)
  local buffer = files.buffer(path)
  local uri = vim.uri_from_fname(path)
  if buffer and vim.bo[buffer].modified then
    local text = files.text(path)
    return { type = "resource", resource = { uri = uri, text = text, mimeType = "text/plain" } }
  end
  return { type = "resource_link", name = M.shown(path, cwd), uri = uri }
end

-- Builds the prompt of a text with `@problems`, `@buffers` and `@path`.
function M.build(text, cwd)
  local blocks = { { type = "text", text = text } }
  local seen, count = {}, 0
  for name in (" " .. text):gmatch("[%s(]@([^%s@]+)") do
    name = name:gsub("[.,;:!?)]+$", "")
    if name ~= "" and not seen[name] and count < MAX_MENTIONS then
      seen[name] = true
      count = count + 1
      local block = M.mention(name, cwd)
      if block then
        blocks[#blocks + 1] = block
      end
    end
  end
  return blocks
end

function M.mention(name, cwd)
  if name == "problems" then
    local found = M.problems(nil, cwd)
    local listed = #found > 0 and "Problems that the editor shows:\n" .. table.concat(found, "\n")
    return { type = "text", text = listed or "The editor shows no problems." }
  elseif name == "buffers" then
    local names = {}
    for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
      if vim.bo[buffer].buflisted and vim.bo[buffer].buftype == "" and vim.api.nvim_buf_get_name(buffer) ~= "" then
        names[#names + 1] = "- " .. M.shown(vim.api.nvim_buf_get_name(buffer), cwd)
      end
    end
    return { type = "text", text = "Files that are open in the editor:\n" .. table.concat(names, "\n") }
  end
  local path = vim.fn.simplify(cwd .. "/" .. name:gsub("#L%d+.*$", ""))
  -- A name outside of the project may be anything, such as an account.
  local found = files.is_inside(cwd, path) and (vim.uv or vim.loop).fs_stat(path)
  return found and found.type == "file" and resource(path, cwd) or nil
end

return M
