// Package vm implements the commands of 'rdmashim vm', which boot guests from
// the command line. It only reads flags and prints results: package vm at the
// module's root boots and runs the guests.
//
// command.go has the common part, vm run and vm build; gotest.go vm test and vm
// exec; demo.go vm demo, and demo_node.go its part in the guests. u-root's init
// starts 'vm guest' there.
package vm
