// The project of the acts.

/** Writes the project of the acts. */
export function seed(stage) {
  stage.write(
    "src/sum.ts",
    "export function sum(values: number[]): number {\n  let total = 1;\n  for (const value of values) total += " +
      "value;\n  return total;\n}\n",
  );
  stage.write("src/util.py", "def add(a, b):\n    return a + b\n");
  stage.write("docs/read.md", "# Read\n\nSome *text*.\n");
  stage.write(
    "docs/pixel.png",
    Buffer.from(
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
      "base64",
    ),
  );
  stage.write("evil<img src=x onerror=alert(1)>.txt", "evil\n");
  stage.write("binary.bin", Buffer.from([0, 1, 2, 3, 255, 0, 7]));
  stage.write(".gitignore", "*.log\n");
  stage.write("notes.log", "ignored\n");
  stage.write(
    ".opencode/command/greet.md",
    "---\ndescription: Greets somebody\n---\ngreet all=[$ARGUMENTS] two=[$2]\n",
  );
  stage.git("init", "-q", "-b", "main");
  stage.git("add", "-A");
  stage.git("commit", "-qm", "first");
}
