-- `:checkhealth codewright`
local M = {}

-- Neovim 0.9 has other names for these functions.
local function report(name)
  local health = vim.health or require("health")
  return health[name] or health["report_" .. name]
end

function M.check()
  report("start")("codewright")
  local version = vim.version()
  local shown = ("Neovim %d.%d.%d"):format(version.major, version.minor, version.patch)
  if vim.fn.has("nvim-0.9") == 1 then
    report("ok")(shown)
  elseif vim.fn.has("nvim-0.8") == 1 then
    report("warn")(shown .. " is older than 0.9, with which the plugin is supported")
  else
    local fewer = " is older than 0.9: there is no window bar above the chat, and sections of this report are fewer"
    report("warn")(shown .. fewer)
  end
  local codewright = require("codewright")
  local program = codewright.program()
  if not program then
    report("error")("the program `codewright` was not found", {
      "install it, or set `program` in `require('codewright').setup`",
    })
    return
  end
  local found = vim.fn.systemlist({ program, "--version" })
  if vim.v.shell_error == 0 then
    report("ok")(("%s: %s"):format(program, found[1] or "unknown version"))
  else
    report("error")(("`%s --version` failed"):format(program))
  end
  if vim.o.autoread then
    report("ok")("'autoread' is set, so buffers follow the agent's changes")
  else
    report("warn")("'autoread' is not set, so buffers do not follow the agent's changes")
  end
end

return M
