// Package vm holds the commands of 'rdmashim vm': guests of package vm in the
// module's root, from the command line. It has no part in how they run.
//
// command.go has what the commands share, vm run and vm build; gotest.go vm
// test and vm exec; shell.go vm shell; demo.go vm demo and demo_node.go what
// that runs in the guests. 'vm guest' is what u-root's init starts there.
package vm
