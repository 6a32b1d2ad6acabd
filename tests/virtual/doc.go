// Package virtual runs queue pairs of rnic/engine on virtual time: nodes with
// regions and queue pairs, a network between them, and a clock that moves from
// event to event. There are no goroutines, no sockets and no real time, and all
// chance comes from a seed, so a run can be had again, bit for bit.
//
// A World holds an event queue. A packet that an engine transmits becomes a
// Flight, the bytes from BTH to ICRC; the network draws from the seed whether
// it is lost, repeated, held back, damaged in one bit, delayed or cut off by a
// partition; a Flight that arrives must have a right ICRC, is parsed, and goes
// to the queue pair with its number. After every call the queue pair's
// completions are taken, it may transmit, and its timeout becomes an event.
//
// It is not a model of the protocol: it does not know what should have
// happened. The scripts below testdata say that, step by step, and tests/soak
// for any program. Scripts are text: commands, a line of dashes, and what they
// lead to. Run the tests with -rewrite to write the latter anew, and read the
// difference against the specification before it is believed.
// testdata/README.md has the commands.
package virtual
