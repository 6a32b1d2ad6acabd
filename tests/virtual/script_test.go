package virtual

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the expected lines of the scripts anew")

// block is commands and their results, with the comments above.
type block struct {
	comment  []string
	commands []string
	expected []string
	line     int
}

// parseScript cuts a script into blocks. A block is comments and empty lines,
// commands, a line of four dashes, and lines up to the next empty one.
func parseScript(text string) ([]block, error) {
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

// TestScripts plays testdata/*.txt.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { playScript(t, file) })
	}
}

func playScript(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	blocks, err := parseScript(string(text))
	require.NoError(t, err, file)
	s := new(script)
	var out strings.Builder
	for _, b := range blocks {
		s.out = nil
		for _, c := range b.commands {
			if err := s.do(c); err != nil {
				t.Fatalf("%s:%d: %q: %v", file, b.line, c, err)
			}
		}
		if s.w != nil {
			require.NoError(t, s.w.Failure(), "%s:%d", file, b.line)
		}
		b.write(&out, s.out)
		if !*rewrite && len(b.commands) > 0 {
			require.Equal(t, strings.Join(b.expected, "\n"), strings.Join(s.out, "\n"),
				"%s:%d: %s\nwent otherwise; -rewrite writes the script anew", file, b.line, strings.Join(b.commands, "; "))
		}
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(strings.TrimRight(out.String(), "\n")+"\n"), 0o644))
	}
}

func TestParseScriptErrors(t *testing.T) {
	for _, s := range []string{"----\n", "post a write\n\n----\n", "post a write\n"} {
		_, err := parseScript(s)
		require.Error(t, err, "%q", s)
	}
}
