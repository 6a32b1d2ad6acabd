package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/vm"
)

// newVMTest runs Go tests in a guest.
func newVMTest() *cobra.Command {
	var f vmFlags
	var c vm.TestConfig
	var run string
	var short bool
	cmd := &cobra.Command{
		Use:   "test [flags] PACKAGE... [-- TESTFLAG...]",
		Short: "Run Go tests in one guest and report them",
		Long: `Builds the test binaries of the packages, static, boots one guest and runs them in
it, each in a directory of its package's name that holds its testdata. What follows
-- is given to the binaries (-test.count=2, or flags of their own).

exit status: 0 all passed; 1 tests failed; 124 the time was up; 125 the guest
could not be run or its kernel complained.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				args, c.Flags = args[:n], args[n:]
			}
			if len(args) == 0 {
				return usagef("vm test needs a package: rdmashim vm test ./...")
			}
			if run != "" {
				c.Flags = append([]string{"-test.run=" + run}, c.Flags...)
			}
			if short {
				c.Flags = append([]string{"-test.short"}, c.Flags...)
			}
			var err error
			if c.Config, err = f.get(cmd.ErrOrStderr()); err != nil {
				return err
			}
			passTestEnv(&c.Config)
			c.Packages, c.Output = args, cmd.OutOrStdout()
			report, err := vm.Test(cmd.Context(), c)
			sayResult(&f, cmd.ErrOrStderr(), report.Result)
			if len(report.Packages) > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "%d passed, %d failed, %d skipped\n", report.Passed, report.Failed, report.Skipped)
			}
			if err != nil && errors.Is(err, vm.ErrTestsFailed) && !hasOther(err) {
				return &exitStatus{Code: 1}
			}
			return vmStatus(err)
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().StringVar(&run, "run", "", "run only tests that match `REGEXP`")
	cmd.Flags().BoolVar(&short, "short", false, "tell tests to be short")
	cmd.Flags().BoolVarP(&c.Verbose, "verbose", "v", false, "print all output of the tests")
	cmd.Flags().StringVar(&c.Tags, "tags", "", "build tags")
	cmd.Flags().BoolVar(&c.Race, "race", false, "build with the race detector, which needs a C compiler here, and more --memory")
	cmd.Flags().StringVar(&f.config.Out, "out", "", "bring files that the tests leave in /out back into `DIR`")
	return cmd
}

// hasOther says whether more than failing tests went wrong.
func hasOther(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	return ok && len(joined.Unwrap()) > 1
}

// passTestEnv hands on the variables that steer tests.
func passTestEnv(c *vm.Config) {
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if name == "CI" || name == "GOTRACEBACK" || name == "GODEBUG" || strings.HasPrefix(name, "RDMASHIM_TEST_") {
			c.Env = append([]string{e}, c.Env...)
		}
	}
}

// newVMExec is for go test -exec.
func newVMExec() *cobra.Command {
	var f vmFlags
	cmd := &cobra.Command{
		Use:   "exec [flags] TESTBINARY [TESTFLAG...]",
		Short: "Run one test binary in a guest, for go test -exec 'rdmashim vm exec'",
		Long: `Runs a test binary as 'go test' calls it:

  CGO_ENABLED=0 go test -exec 'rdmashim vm exec' PACKAGE

The package's testdata is there, profiles come back, -timeout is obeyed, and
nothing is said about booting unless --verbose is given.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("vm exec needs a test binary; it is called as go test -exec 'rdmashim vm exec'")
			}
			f.quiet = !cmd.Flags().Lookup("verbose").Changed
			c, err := f.get(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			passTestEnv(&c)
			c.Command = vm.Command{Stdin: cmd.InOrStdin(), Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr()}
			result, err := vm.ExecTest(cmd.Context(), c, args)
			sayResult(&f, cmd.ErrOrStderr(), result)
			return vmStatus(err)
		},
	}
	cmd.Flags().SetInterspersed(false)
	f.register(cmd.Flags())
	cmd.Flags().BoolP("verbose", "v", false, "tell about booting")
	return cmd
}
