// Package privatefile makes the files of captures and traces, which hold what
// programs tell each other: for one user's eyes, and never through a symbolic
// link that somebody else may have made.
//
// Open is all there is; it hands on to os.OpenFile. The package does not guard
// what exists: a file keeps its mode and its owner.
package privatefile
