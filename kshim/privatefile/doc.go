// Package privatefile makes the files of captures and traces, which hold
// programs' data: for one user's eyes, and never through a symbolic link that
// another user may have made.
//
// Open is its only call; it hands on to os.OpenFile. The package does not guard
// a file that exists: the file keeps its mode and its owner.
package privatefile
