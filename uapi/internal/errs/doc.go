// Package errs makes the errors that package uapi and the packages below it
// return: an errno with a sentence that says what was wrong and what to do
// (Explain), and one error of several attempts (Tried).
//
// It knows no calls and no objects: a call of uapi wraps what it gets from here
// once, in an OpError that names both.
package errs
