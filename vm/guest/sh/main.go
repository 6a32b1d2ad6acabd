package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

const usage = "usage: sh [-aefnux] [-o OPTION] [-c COMMAND [NAME [ARGUMENT...]] | -s [ARGUMENT...] | FILE [ARGUMENT...]]"

// Exit statuses that are not the script's (POSIX, sh, EXIT STATUS).
const (
	statusFailed   = 1
	statusSyntax   = 2
	statusNoScript = 127
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run runs the script that args name and returns its exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fail := func(status int, err error) int {
		fmt.Fprintf(stderr, "sh: %v\n", err)
		return status
	}
	c, err := parse(args)
	if err != nil {
		return fail(statusSyntax, err)
	}
	text, err := c.open(stdin)
	if err != nil {
		return fail(statusNoScript, err)
	}
	script, err := syntax.NewParser().Parse(text, c.name)
	text.Close()
	if err != nil {
		return fail(statusSyntax, err)
	}
	runner, err := interp.New(interp.StdIO(stdin, stdout, stderr), interp.Params(append(append(c.set, "--"), c.params...)...))
	if err != nil {
		return fail(statusSyntax, fmt.Errorf("%w\n%s", err, usage))
	}
	err = runner.Run(context.Background(), script)
	if status, ok := interp.IsExitStatus(err); ok {
		return int(status)
	}
	if err != nil {
		return fail(statusFailed, err)
	}
	return 0
}

// commandLine is the command that sh runs.
type commandLine struct {
	set    []string // options of set(1), a letter each
	text   *string  // of -c
	stdin  bool     // the script is standard input
	name   string   // $0
	params []string // $1 …
}

// parse reads a command line as POSIX has it.
func parse(args []string) (*commandLine, error) {
	c := &commandLine{name: "sh"}
	command := false
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		word := args[0]
		args = args[1:]
		if word == "--" {
			break
		}
		for _, letter := range word[1:] {
			switch letter {
			case 'c':
				command = true
			case 's':
				c.stdin = true
			case 'i', 'l': // a script needs neither a prompt nor a profile
			case 'o':
				if len(args) == 0 {
					return nil, fmt.Errorf("%s needs an option's name\n%s", word, usage)
				}
				c.set, args = append(c.set, word[:1]+"o", args[0]), args[1:]
			default:
				c.set = append(c.set, word[:1]+string(letter))
			}
		}
	}
	switch {
	case command && len(args) == 0:
		return nil, errors.New("-c needs a command\n" + usage)
	case command:
		c.text, args = &args[0], args[1:]
	case len(args) == 0:
		c.stdin = true
	}
	if !c.stdin || command {
		if len(args) > 0 {
			c.name, args = args[0], args[1:]
		}
	}
	c.params = args
	return c, nil
}

// open opens the script.
func (c *commandLine) open(stdin io.Reader) (io.ReadCloser, error) {
	switch {
	case c.text != nil:
		return io.NopCloser(strings.NewReader(*c.text)), nil
	case c.stdin:
		return io.NopCloser(stdin), nil
	}
	return os.Open(c.name)
}
