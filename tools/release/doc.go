// Command release builds the programs of a tag, so that anyone can build the
// same bytes again.
//
//	go run ./tools/release -o dist v0.2.0
//
// The commit of the tag becomes the module as a proxy of modules serves it, and
// the go command installs the tool from there for each target. With the same
// version of Go, whoever has the module from elsewhere gets the same program:
//
//	CGO_ENABLED=0 go install -trimpath -ldflags='-s -w -buildid=' \
//		github.com/rdmashim/rdmashim/tools/rdmashim@v0.2.0
//
// The folder that it writes has an archive for each target, with the program
// and the licenses of what it is made of, a list of the program's modules
// (SBOM, CycloneDX 1.6), and SHA256SUMS.
//
// It neither tags nor publishes: docs/contributing.md has the steps.
package main
