// Package arch holds the rules of the architecture: the packages that each
// package may import, the places of unsafe, a doc.go for each package, the
// width of comments, that ARCHITECTURE.md and README.md name only paths that
// exist, and that other systems have the types that the sources use. It reads
// the sources with go/parser and go/types; it holds no code of its own.
package arch
