// A tool in Go: an MCP server over standard input and output, with the standard library only.
//
// Build it with `go build -o stats .` and add it to `opencode.json` of a project; the model then has the tool `stats_count`:
//
//	{ "mcp": { "stats": { "type": "local", "command": ["/path/to/stats"] } } }
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method"`
	Params struct {
		Name            string `json:"name"`
		ProtocolVersion string `json:"protocolVersion"`
		Arguments       struct {
			Text string `json:"text"`
		} `json:"arguments"`
	} `json:"params"`
}

type object = map[string]any

var tool = object{
	"name":        "count",
	"description": "Counts the lines, words and characters of a text",
	"inputSchema": object{
		"type":       "object",
		"properties": object{"text": object{"type": "string"}},
		"required":   []string{"text"},
	},
}

func count(text string) string {
	lines := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		lines++
	}
	return fmt.Sprintf("%d lines, %d words, %d characters", lines, len(strings.Fields(text)), len([]rune(text)))
}

// answer returns the result of a request, or nil if its method is unknown.
func answer(in message) any {
	switch {
	case in.Method == "initialize":
		info := object{"name": "stats", "version": "1"}
		return object{"protocolVersion": in.Params.ProtocolVersion, "capabilities": object{"tools": object{}}, "serverInfo": info}
	case in.Method == "ping":
		return object{}
	case in.Method == "tools/list":
		return object{"tools": []object{tool}}
	case in.Method == "tools/call" && in.Params.Name == "count":
		return object{"content": []object{{"type": "text", "text": count(in.Params.Arguments.Text)}}}
	}
	return nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 8<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var in message
		if err := json.Unmarshal(lines.Bytes(), &in); err != nil {
			fmt.Fprintln(os.Stderr, "not a message:", err)
			os.Exit(1)
		}
		if in.ID == nil {
			continue
		}
		reply := object{"jsonrpc": "2.0", "id": in.ID}
		if result := answer(in); result != nil {
			reply["result"] = result
		} else {
			reply["error"] = object{"code": -32601, "message": "unknown method " + in.Method}
		}
		if out.Encode(reply) != nil {
			return
		}
	}
}
