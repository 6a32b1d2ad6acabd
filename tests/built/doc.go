// Package built finds what tools/test builds once for all tests of a run: the
// tool, the image of the guests, the libraries for C programs.
//
// It builds the tool itself for the tests of a package that run alone; the
// other two their own packages build. A test of the building calls neither
// Path nor Tool.
package built
