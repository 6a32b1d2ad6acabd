// Package plant plants mistakes in the sources of a test binary, to show that
// a randomised test notices them.
//
// The product's sources know nothing of it: a mistake is a row that replaces a
// piece of a source file, which go build's -overlay applies. All mistakes of a
// table are compiled into one binary, each behind a comparison, and an
// environment variable makes one of them. A row whose piece is not in its file
// exactly once fails the test, so rows follow the sources.
//
// It is not a mutation tester that invents mistakes: each is chosen because a
// transport of this kind was seen to make it.
//
// A test flows: Check writes the overlay, builds the test binary, runs the
// randomised test without a mistake, which must pass, and then with each, which
// must fail and name a seed.
package plant
