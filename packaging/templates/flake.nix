{
  description = "AI coding agent for the terminal";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  outputs =
    { self, nixpkgs }:
    let
      digests = {
        "x86_64-linux" = [ "x86_64-unknown-linux-musl" "@SHA256:x86_64-unknown-linux-musl@" ];
        "aarch64-linux" = [ "aarch64-unknown-linux-musl" "@SHA256:aarch64-unknown-linux-musl@" ];
        "x86_64-darwin" = [ "x86_64-apple-darwin" "@SHA256:x86_64-apple-darwin@" ];
        "aarch64-darwin" = [ "aarch64-apple-darwin" "@SHA256:aarch64-apple-darwin@" ];
      };
      package =
        system: row:
        let
          pkgs = nixpkgs.legacyPackages.${system};
          target = builtins.elemAt row 0;
        in
        pkgs.stdenvNoCC.mkDerivation {
          pname = "codewright";
          version = "@VERSION@";
          src = pkgs.fetchurl {
            url = "@SOURCE@/download/v@VERSION@/codewright-@VERSION@-${target}.tar.gz";
            sha256 = builtins.elemAt row 1;
          };
          installPhase = ''
            install -Dm755 codewright $out/bin/codewright
          '';
        };
    in
    {
      packages = builtins.mapAttrs (system: row: { default = package system row; }) digests;
    };
}
