package vm

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	guests "github.com/rdmashim/rdmashim/vm"
)

// newTest runs Go tests in a guest.
func newTest() *cobra.Command {
	var f bootFlags
	var run, tags string
	var short, verbose, race bool
	cmd := &cobra.Command{
		Use:     "test [flags] PACKAGE... [-- FLAG...]",
		Example: `  rdmashim vm test ./kshim/host -- -test.v`,
		Short:   "Run go test, with the tests in one guest",
		Long: `Boots one guest and runs 'go test' with the flags --run, --short, --tags, --race
and -v, the packages, and what follows --: flags of go test or of the test
binaries (-json, -count=2). The binaries, static but for --race, run in the
guest one after the other, each in a directory of its package's name; the
module's testdata is there, profiles come back.

exit status: 0 all passed; 1 tests failed; 124 the time was up; 125 the guest
could not be run or its kernel complained.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var after []string
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				args, after = args[:n], args[n:]
			}
			if len(args) == 0 {
				return cli.Usagef("vm test needs a package: rdmashim vm test ./...")
			}
			var flags []string
			for flag, set := range map[string]bool{"-run=" + run: run != "", "-tags=" + tags: tags != "", "-short": short, "-v": verbose, "-race": race} {
				if set {
					flags = append(flags, flag)
				}
			}
			c, err := f.get(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if c.Memory == 0 {
				c.Memory = 1024 // test binaries, and those of the race detector need much
			}
			passTestEnv(&c)
			program, err := os.Executable()
			if err != nil {
				return err
			}
			s, err := guests.Start(cmd.Context(), c)
			if err != nil {
				return status(err)
			}
			err = s.GoTest(cmd.Context(), program, "", append(append(flags, args...), after...), cmd.OutOrStdout(), cmd.ErrOrStderr())
			perr := s.PullAll(cmd.Context())
			result, cerr := s.Close()
			printResult(&f, cmd.ErrOrStderr(), result)
			if perr == nil && cerr == nil && guests.TestFailure(err) {
				return &cli.ExitStatus{Code: 1}
			}
			return status(errors.Join(err, perr, cerr))
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().StringVar(&run, "run", "", "run only tests that match `REGEXP`")
	cmd.Flags().BoolVar(&short, "short", false, "tell tests to be short")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print all output of the tests")
	cmd.Flags().StringVar(&tags, "tags", "", "build tags")
	cmd.Flags().BoolVar(&race, "race", false, "build with the race detector, which needs a C compiler here")
	cmd.Flags().StringVar(&f.config.Out, "out", "", "bring files that the tests leave in /out back into `DIR`")
	return cmd
}

// passTestEnv hands on the variables that steer tests.
func passTestEnv(c *guests.Config) {
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if name == "CI" || name == "GOTRACEBACK" || name == "GODEBUG" || strings.HasPrefix(name, "RDMASHIM_TEST_") {
			c.Env = append([]string{e}, c.Env...)
		}
	}
}

// newExec is for go test -exec.
func newExec() *cobra.Command {
	var f bootFlags
	var socket string
	cmd := &cobra.Command{
		Use:     "exec [flags] TESTBINARY [TESTFLAG...]",
		Example: `  go test -c -o host.test ./kshim/host && rdmashim vm exec host.test -test.v`,
		Short:   "Run a test binary in a guest: go test -exec 'rdmashim vm exec'",
		Long: `Runs a test binary as 'go test' calls it:

  CGO_ENABLED=0 go test -exec 'rdmashim vm exec' PACKAGE

The package's testdata is there, profiles come back, -timeout is obeyed, and
nothing is said about booting unless --verbose is given.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("vm exec needs a test binary; it is called as go test -exec 'rdmashim vm exec'")
			}
			if socket != "" {
				return status(guests.ExecTestIn(socket, args, cmd.OutOrStdout(), cmd.ErrOrStderr()))
			}
			f.quiet = !cmd.Flags().Lookup("verbose").Changed
			c, err := f.get(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			passTestEnv(&c)
			c.Command = guests.Command{Stdin: cmd.InOrStdin(), Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr()}
			result, err := guests.ExecTest(cmd.Context(), c, args)
			printResult(&f, cmd.ErrOrStderr(), result)
			return status(err)
		},
	}
	cmd.Flags().SetInterspersed(false)
	f.register(cmd.Flags())
	cmd.Flags().BoolP("verbose", "v", false, "tell about booting")
	cmd.Flags().StringVar(&socket, "in", "", "")
	_ = cmd.Flags().MarkHidden("in") // vm test gives it to go test
	return cmd
}
