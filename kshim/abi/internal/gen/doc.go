// Command gen writes the *_gen.go files of kshim/abi: the structures with their
// sizes, encoders and decoders, the offsets of shared-memory queues, and the
// enumerations with their names; and a table of the structures for the tests.
// Run it by "go generate ./kshim/abi".
//
// Offsets, sizes and numbers come from testdata/*.golden, which is what a C
// program printed that was compiled with the kernel's headers. Go names, Go
// types and comments come from layout.txt. The generator refuses a structure of
// the golden files that layout.txt does not mention, and a field that the
// golden files do not have.
//
// To add a structure, name it and its fields in testdata/layout.c, record what
// that prints (cc layout.c && ./a.out >layout.golden), and declare it in
// layout.txt. layout_test.go holds the Go structure to the golden file, and
// that to the installed headers.
//
// # layout.txt
//
// A line that starts with # is a comment. An unindented line starts a
// declaration:
//
//	file NAME                      the declarations that follow go to NAME_gen.go
//	struct C GO                    a structure with Put and Parse
//	offsets C PREFIX SIZE          constants for the offsets of a structure's fields
//	enum GO BASE PREFIX [C_]       a type whose values have names
//	flags GO BASE PREFIX [C_]      the same of single bits
//	values GO BASE PREFIX [C_]     a type whose values have no String method
//	skip C                         a structure that needs no Go
//
// C_ is the prefix of the values in the golden files. Indented lines belong to
// the declaration. A line that starts with // continues its doc comment. The
// others hold words of the form NAME[>GoName][=value], and at their end a
// comment for each of the words.
//
// In a struct and in offsets NAME is a field, and value its Go type. Without a
// word the Go name is made out of the C name and the type out of the size, and
// fields that are called reserved are left out. The type be64 is a uint64 in
// big-endian order.
//
// In an enumeration a word adds a value that the golden files do not have, or
// gives one that they have another Go name or a comment; -NAME leaves one out.
// A value without a number follows the one before it.
package main
