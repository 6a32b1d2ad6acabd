// Package cli holds the parts that the commands of rdmashim share: their start
// and their exit status, common flags, and the output to a terminal. It knows
// no command and nothing of RDMA but device names.
//
// A command is a function that returns a *cobra.Command; each subject has a
// folder of its own, which exports the constructor. The command writes data to
// cmd.OutOrStdout() and all else to cmd.ErrOrStderr(), and returns an error:
//
//   - nil is exit status 0.
//   - An error is one line on standard error and exit status 1.
//   - A *UsageError, made by Usagef, is a mistake in the call: exit status 2,
//     and the line names the command's --help.
//   - An *ExitStatus is any other status, with a line or without one.
//
// Package clitest below runs commands in tests, also as processes of their own.
package cli
