// Package arch holds the rules of the architecture: who may import whom, where
// unsafe lives, what each package must have, and that ARCHITECTURE.md and
// README.md name only paths that exist. It reads the sources with go/parser; it
// holds no code of its own.
package arch
