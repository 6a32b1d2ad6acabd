package script

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the results of the scripts anew")

// Player carries out a script.
type Player interface {
	// Do carries out a command: a line.
	Do(command string) error
	// Results returns the lines that the commands since the last call led to,
	// or an error that ends the script.
	Results() ([]string, error)
}

// Play plays testdata/*.txt, each as a subtest with a player of its own.
func Play(t *testing.T, begin func(*testing.T) Player) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { play(t, file, begin(t)) })
	}
}

func play(t *testing.T, file string, p Player) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	blocks, err := parse(string(text))
	require.NoError(t, err, file)
	var out strings.Builder
	for _, b := range blocks {
		for _, c := range b.commands {
			require.NoError(t, p.Do(c), "%s:%d: %q", file, b.line, c)
		}
		got, err := p.Results()
		require.NoError(t, err, "%s:%d", file, b.line)
		b.write(&out, got)
		if !*rewrite {
			require.Equal(t, strings.Join(b.expected, "\n"), strings.Join(got, "\n"),
				"%s:%d: %s\nwent otherwise; -rewrite writes the script anew", file, b.line, strings.Join(b.commands, "; "))
		}
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(strings.TrimRight(out.String(), "\n")+"\n"), 0o644))
	}
}

// block is commands and their results, with the comments above.
type block struct {
	comment  []string
	commands []string
	expected []string
	line     int // of the first command
}

// parse cuts a script into blocks. The last one may have comments alone.
func parse(text string) ([]block, error) {
	var blocks []block
	var b block
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		s := lines[i]
		switch {
		case s == "----":
			if len(b.commands) == 0 {
				return nil, fmt.Errorf("line %d: dashes without commands", i+1)
			}
			for i++; i < len(lines) && lines[i] != ""; i++ {
				b.expected = append(b.expected, lines[i])
			}
			blocks = append(blocks, b)
			b = block{}
		case s == "" || strings.HasPrefix(s, "#"):
			if len(b.commands) > 0 {
				return nil, fmt.Errorf("line %d: commands without dashes behind them", i+1)
			}
			b.comment = append(b.comment, s)
		default:
			if len(b.commands) == 0 {
				b.line = i + 1
			}
			b.commands = append(b.commands, s)
		}
	}
	if len(b.commands) > 0 {
		return nil, fmt.Errorf("the last commands have no dashes behind them")
	}
	if len(b.comment) > 0 {
		blocks = append(blocks, b)
	}
	return blocks, nil
}

func (b *block) write(w *strings.Builder, got []string) {
	for _, s := range b.comment {
		fmt.Fprintln(w, s)
	}
	if len(b.commands) == 0 {
		return
	}
	for _, s := range b.commands {
		fmt.Fprintln(w, s)
	}
	fmt.Fprintln(w, "----")
	for _, s := range got {
		fmt.Fprintln(w, s)
	}
	fmt.Fprintln(w)
}
