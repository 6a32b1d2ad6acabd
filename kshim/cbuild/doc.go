// Package cbuild makes C libraries of this module's Go packages, on the machine
// on which they are to run: it finds a C compiler and the module's sources, and
// has the go command build a package with them.
//
// A call flows: Compiler names the compiler, Library finds the sources and has
// the go command build one package there, and Run tells how a build failed.
//
// It keeps nothing and knows no library: kshim/preload has a cache of what it
// builds, uapi/capi installs it.
package cbuild
