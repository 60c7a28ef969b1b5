// The answers of the scripted model, by a word of the prompt.
const tool = (name, args) => ({ steps: [{ tool: name, args }] });
const bash = (command) => tool("bash", { command, description: "Run it" });

export const RICH = `The sum began at **one** instead of *zero*; see \`src/sum.ts:2\`.

### What changed

1. \`sum\` begins with zero
2. The test covers an empty list
   - and a list with one value

- [x] a finished task
- [ ] an open task

| case | before | after |
|---|---:|---:|
| empty | 1 | 0 |
| \`[2, 3]\` | 6 | 5 |

\`\`\`ts
export function sum(values: number[]): number {
  // Begins at zero.
  return values.reduce((total, value) => total + value, 0);
}
\`\`\`

> Only the first line changes, so callers do not notice.

Read more in [the docs](https://example.com/docs) &amp; elsewhere.`;

/** A text that does something if anything in it is taken for markup. */
export const HOSTILE = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script><b>bold</b>

<svg onload="document.title='owned'"><animate onbegin="document.title='owned'"/></svg>

[a link](javascript:document.title='owned') and [data](data:text/html,<script>document.title='owned'</script>)
and [file](file:///etc/passwd) and [vb](vbscript:x)

![a picture](https://evil.example/pixel.png) ![svg](data:image/svg+xml,<svg onload="document.title='owned'">)

<iframe src="https://evil.example"></iframe><style>body{display:none}</style><base href="https://evil.example">

right\u202eleft \u0007bell \u001b]0;owned\u0007 \u001b[2J

[ref]: javascript:document.title='owned'
[ref]

<https://evil.example/auto> <javascript:document.title='owned'>

\`\`\`html"onmouseover="document.title='owned'
</code></pre><script>document.title='owned'</script>
\`\`\`
`;

/** A review with two findings. */
const REVIEW = {
  match: "You review code changes",
  turns: [
    tool("StructuredOutput", {
      summary: "Mostly fine.",
      findings: [
        {
          file: "odd.txt",
          line: 2,
          severity: "high",
          title: "The second line is odd",
          description: "It breaks.",
          original: "two",
          suggestion: "2",
        },
        {
          file: "odd.txt",
          line: 1,
          severity: "low",
          title: "The first line is short",
          description: "It could be longer.",
          suggestion: "Write more.",
        },
      ],
    }),
  ],
};

/** Sessions whose model asks the user. */
const QUESTIONS = [
  {
    match: "QUIZ",
    turns: [
      tool("question", {
        questions: [
          {
            question: "Which color?",
            header: "Color",
            options: [
              { label: "Red", description: "warm" },
              { label: "Blue", description: "cold" },
            ],
          },
          {
            question: "Pick many",
            header: "Many",
            multiple: true,
            options: [
              { label: "Apples", description: "" },
              { label: "Pears", description: "" },
            ],
          },
        ],
      }),
      "Quizzed.",
    ],
  },
  {
    match: "ASKONE",
    turns: [
      tool("question", {
        questions: [
          {
            question: "Go on?",
            header: "Go",
            options: [
              { label: "Yes", description: "" },
              { label: "No", description: "" },
            ],
          },
        ],
      }),
      "Asked one.",
    ],
  },
];

export function script(directory) {
  const file = (name) => `${directory}/${name}`;
  return {
    title: "Scripted title",
    checks: "record",
    sessions: [
      {
        match: "FIXIT",
        turns: [
          {
            steps: [
              { reasoning: "The user wants the sum fixed.\n\nI look at the **file** first." },
              { text: "I will look at the code first." },
              { tool: "read", args: { filePath: file("src/sum.ts") } },
            ],
          },
          tool("grep", { pattern: "total" }),
          tool("glob", { pattern: "**/*.ts" }),
          tool("todowrite", {
            todos: [
              { content: "Read the code", status: "completed", priority: "high" },
              { content: "Fix the start", status: "in_progress", priority: "high" },
              { content: "Run the tests", status: "pending", priority: "low" },
            ],
          }),
          tool("edit", { filePath: file("src/sum.ts"), oldString: "let total = 1;", newString: "let total = 0;" }),
          RICH,
        ],
      },
      {
        match: "WRITEIT",
        turns: [tool("write", { filePath: file("src/new.ts"), content: "export const one = 1;\n" }), "Wrote it."],
      },
      REVIEW,
      { match: "RUNIT", turns: [bash("printf '\\033[32mgreen\\033[0m from-bash\\n'"), "Ran it."] },
      { match: "KEEPIT", turns: [bash("echo kept-one"), bash("echo kept-two"), "Kept it."] },
      { match: "WIDENIT", turns: [bash("git log -1"), bash("git branch"), "Widened it."] },
      { match: "DENYIT", turns: [bash("printf denied"), "Denied then."] },
      { match: "LONGOUT", turns: [bash("seq 1 200"), "Counted."] },
      { match: "ODDIT", turns: [bash("printf 'a\\033]0;owned\\007b\\033[2Jc\\rd\\n'"), "Odd."] },
      { match: "FAILIT", turns: [bash("echo oops; exit 3"), "Failed then."] },
      {
        match: "EDITASK",
        turns: [
          tool("edit", { filePath: file("docs/read.md"), oldString: "# Read", newString: "# Read me" }),
          "Edited docs.",
        ],
      },
      ...QUESTIONS,
      {
        match: "HANDOVER",
        turns: [
          tool("task", { description: "Look at the tests", prompt: "BELOWIT", subagent_type: "general" }),
          "Handed over.",
        ],
      },
      {
        match: "HANDRUN",
        turns: [
          tool("task", { description: "Run below", prompt: "BELOWRUN", subagent_type: "general" }),
          "Handed the run over.",
        ],
      },
      { match: "BELOWIT", turns: [tool("grep", { pattern: "sum" }), "The tests are **fine**."] },
      { match: "BELOWRUN", turns: [bash("echo from-below"), "Below is done."] },
      {
        match: "SLOWLY",
        turns: [
          {
            steps: [
              {
                text: Array.from({ length: 400 }, (_, at) => `word${at}`).join(" "),
                chunk_size: 12,
                chunk_delay_ms: 60,
              },
            ],
          },
        ],
      },
      {
        match: "BREAKIT",
        turns: [{ http_error: { status: 400, body: { error: { message: "the model is out of order" } } } }],
      },
      { match: "HOSTILE", turns: [HOSTILE] },
      {
        match: "FORMULA",
        turns: [
          "It costs $5 and $10.\n\n$$\n\\frac{a}{b} = \\sqrt{c}\n$$\n\nand $x_1$ and " +
            "$\\href{javascript:document.title='owned'}{x}$ and $\\class{evil}{y}$",
        ],
      },
      { match: "CODEBIG", turns: [`\`\`\`js\n${"const a = 1; // line\n".repeat(3_000)}\`\`\`\n\nEnd of code.`] },
    ].map((session) => ({ ...session, loop: true })),
    default: "Hello from the **model**.",
  };
}
