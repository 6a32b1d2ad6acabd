package explain

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// Answer is the output of 'explain --json'; the keys are stable.
type Answer struct {
	Asked string  `json:"asked"`
	Found []Entry `json:"found"`
}

// Command is 'rdmashim explain'.
func Command() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain [KIND] NAME|NUMBER",
		Short: "Say what a status, errno, opcode or syndrome means",
		Long: `Say what a completion status, an errno, an opcode or a syndrome means, what
usually causes it, and what to look at. Names are taken in any spelling, with
the prefixes of verbs or without: RETRY_EXC_ERR, IBV_WC_RETRY_EXC_ERR,
'transport retry counter exceeded'. The first words of names will do: NAK, REM.
Events of devices and of the connection manager go, too. A number may mean
several things: a KIND before it chooses one, and a KIND alone lists all of it.

` + kindsHelp(),
		Example: `  rdmashim explain RETRY_EXC_ERR
  rdmashim explain 12                    # status, errno, opcode, syndrome … 12
  rdmashim explain status 12
  rdmashim explain EMSGSIZE
  rdmashim explain RC RDMA_WRITE_FIRST   # or: explain opcode 0x06
  rdmashim explain NAK PSN sequence error
  rdmashim explain RDMA_CM_EVENT_UNREACHABLE
  rdmashim explain timer                 # all RNR timers`,
		RunE: func(cmd *cobra.Command, args []string) error {
			asked := strings.Join(args, " ")
			if strings.TrimSpace(asked) == "" {
				if asJSON {
					return cli.Usagef("explain --json wants something to explain: a name, a number or a kind")
				}
				return cmd.Help()
			}
			found := Find(asked)
			if len(found) == 0 {
				return unexplained(asked)
			}
			if asJSON {
				return cli.PrintLine(cmd.OutOrStdout(), Answer{asked, found})
			}
			return printExplained(cmd.OutOrStdout(), found)
		},
	}
	cli.JSONFlag(cmd, &asJSON)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return cli.Usagef("%w (before a negative errno write --: rdmashim explain -- -22)", err)
	})
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return completions(), cobra.ShellCompDirectiveNoFileComp
		case 1:
			return namesOf(Kind(strings.ToLower(args[0]))), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// kindsHelp lists what can be asked, for the help.
func kindsHelp() string {
	var b strings.Builder
	for _, k := range Kinds {
		all := All(k)
		fmt.Fprintf(&b, "  %-9s %s, such as %s\n", k, k.Title(), all[len(all)/2].Name)
	}
	return strings.TrimRight(b.String(), "\n")
}

// completions are the words that a shell completes.
func completions() (names []string) {
	for _, k := range Kinds {
		names = append(names, string(k))
	}
	for _, k := range []Kind{Status, Errno, Event, CMEvent} {
		names = append(names, namesOf(k)...)
	}
	return names
}

// namesOf are the names of a kind, as one word each; times have none worth it.
func namesOf(k Kind) (names []string) {
	for _, e := range All(k) {
		if !strings.ContainsAny(e.Name, "()") {
			names = append(names, strings.ReplaceAll(e.Name, " ", "_"))
		}
	}
	return names
}

func unexplained(asked string) error {
	if near := Nearest(asked, 4); len(near) > 0 {
		return fmt.Errorf("nothing is known of %q; near to it: %s", asked, strings.Join(near, ", "))
	}
	return fmt.Errorf("nothing is known of %q; 'rdmashim explain' lists what can be asked", asked)
}

// briefly is how many answers are a list rather than texts.
const briefly = 8

func printExplained(w io.Writer, found []Entry) error {
	p := cli.PaletteFor(w)
	var b bytes.Buffer
	if len(found) > briefly {
		for _, e := range found {
			fmt.Fprintf(&b, "%-9s %3d  %s: %s\n", e.Kind, e.Number, p.Bold(e.Name), e.Means)
		}
	} else {
		for i, e := range found {
			if i > 0 {
				b.WriteByte('\n')
			}
			printExplanation(&b, p, &e)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func printExplanation(b *bytes.Buffer, p cli.Palette, e *Entry) {
	fmt.Fprintf(b, "%s: %s %d", p.Bold(e.Name), e.Kind.Title(), e.Number)
	if len(e.Also) > 0 {
		fmt.Fprintf(b, " (%s)", strings.Join(e.Also, ", "))
	}
	b.WriteByte('\n')
	fmt.Fprintf(b, "  means\n    %s\n", e.Means)
	if e.Packet != nil {
		printPacket(b, e.Packet)
	}
	printPoints(b, "usual causes", e.Causes)
	printPoints(b, "look at", e.Look)
}

func printPacket(b *bytes.Buffer, k *Packet) {
	headers := "no header"
	if len(k.Headers) > 0 {
		headers = strings.Join(k.Headers, ", ")
	}
	payload := "no payload"
	if k.Payload {
		payload = "payload"
	}
	fmt.Fprintf(b, "  packet\n    %s %s, %s; behind the BTH: %s, %s; %d bytes of headers\n", k.Service, k.Operation, k.Direction, headers, payload, k.HeaderBytes)
}

func printPoints(b *bytes.Buffer, title string, points []string) {
	if len(points) == 0 {
		return
	}
	fmt.Fprintf(b, "  %s\n", title)
	for _, s := range points {
		fmt.Fprintf(b, "    - %s\n", s)
	}
}
