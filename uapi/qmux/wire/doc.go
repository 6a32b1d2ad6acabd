// Package wire is QMux as bytes: variable-length integers, records, the frames
// that may stand in them, transport parameters and error codes, after
// draft-ietf-quic-qmux-02 and the parts of RFC 9000 that it keeps.
//
// It keeps no state, does no I/O, knows no clock and no connection, and imports
// the standard library only. uapi/qmux/core gives frames their meaning for a
// stream.
//
// # The stream of records
//
// Each side of the ordered byte stream is a sequence of records:
//
//	Record = Size | Frame | Frame | …
//
// Receiving: [ParseRecord] finds the first record in the bytes that arrived, or
// says that more are needed; [Frame.Parse] takes one frame at a time from it.
// The table in frametable.go says which fields follow a type; those fields of
// the Frame are set, all others are zero, and Data is a part of the input. The
// first frame of all carries parameters, which [Parameters.Parse] reads.
//
// Sending: [Frame.Append] writes frames, [AppendVarint] the Size before them.
//
// # Rules that hold everywhere
//
//   - Numbers are varints of at most 62 bits (RFC 9000 section 16). A longer form
//     than needed is accepted but for types of frames, as section 12.4 has it.
//   - Parse functions accept any bytes: they return an [Error], which knows its
//     error code, never panic, and never read beyond what they were given.
//   - Append functions write every byte of what they append, and cut a number
//     that is wider than 62 bits to that width.
//   - Nothing here allocates but an Append that must grow its buffer, and String.
package wire
