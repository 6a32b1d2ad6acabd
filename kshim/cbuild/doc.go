// Package cbuild makes C libraries of this module's Go packages, on the machine
// on which they are to run: it finds a C compiler and the module's sources, and
// has the go command build a package with them.
//
// It keeps nothing and knows no library: kshim/preload has a cache of what it
// builds, uapi/capi installs it.
package cbuild
