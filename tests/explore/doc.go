// Package explore visits all interleavings of a small model that is made of
// real state machines.
//
// It is not a model checker with a language of its own: a model is Go code that
// lists what can happen next, and that tells which of its states are wrong.
//
// An exploration flows: Check visits every state that can be reached, breadth
// first, so that the trace that it prints is a shortest one; states are told
// apart by the hash of all that a model holds; from the states in which nothing
// happens any more it goes back, to find those that can go on for ever and get
// nowhere.
package explore
