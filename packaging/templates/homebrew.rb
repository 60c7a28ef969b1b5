class Codewright < Formula
  desc "AI coding agent for the terminal"
  homepage "@SOURCE@"
  version "@VERSION@"
  license "MIT"

  on_macos do
    on_arm do
      url "@SOURCE@/download/v@VERSION@/codewright-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256:aarch64-apple-darwin@"
    end
    on_intel do
      url "@SOURCE@/download/v@VERSION@/codewright-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256:x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@SOURCE@/download/v@VERSION@/codewright-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "@SOURCE@/download/v@VERSION@/codewright-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:x86_64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "codewright"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/codewright.bash" => "codewright"
    zsh_completion.install "completions/_codewright"
    fish_completion.install "completions/codewright.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/codewright --version")
  end
end
