// Package amount says how much of its seeds, rows and boots a test runs.
//
// A test proves the same with a part of them as with all, only less often: a
// part is what each change is tried with, all is what 'tools/test --all' runs,
// and CI.
//
// It knows no test. One that runs a part asks Of or Some; one that repeats a
// proof of another test at a greater cost calls Rest.
package amount
