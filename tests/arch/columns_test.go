package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const columns = 80

// verbatim is text that is not wrapped: code and lists within a comment,
// directives, and what an example prints.
var verbatim = regexp.MustCompile(`^//(\t|  | -|go:|export |line | Output:| Unordered output:| Code generated)`)

// TestColumns holds comments of sources, and the prose of pages, to 80 columns,
// a tab being four. A line of one word, such as an address, may be longer.
func TestColumns(t *testing.T) {
	out, err := exec.Command("git", "-C", root, "ls-files", "*.go", "*.md", ":!*.pb.go").Output()
	if err != nil {
		t.Skip("no git, or no checkout of it, to tell the repository's files; run it in a clone")
	}
	for name := range strings.FieldsSeq(string(out)) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted and not yet committed
		}
		require.NoError(t, err)
		long := longComments
		if strings.HasSuffix(name, ".md") {
			long = longProse
		}
		for number, line := range long(string(text)) {
			t.Errorf("%s:%d has more than %d columns: %s", name, number, columns, line)
		}
	}
}

func tooLong(line string) bool {
	words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "//"))
	return len(words) > 1 && utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) > columns
}

// longComments returns the lines of comments that are too long, by number.
func longComments(source string) map[int]string {
	long := map[int]string{}
	raw, printed := false, false
	for i, line := range strings.Split(source, "\n") {
		comment := strings.TrimSpace(line)
		if !strings.HasPrefix(comment, "//") || raw {
			raw = raw != (strings.Count(line, "`")%2 == 1) // in a string of several lines
			printed = false
			continue
		}
		printed = printed || strings.HasSuffix(strings.ToLower(comment), "output:")
		if !printed && !verbatim.MatchString(comment) && tooLong(line) {
			long[i+1] = comment
		}
	}
	return long
}

// longProse returns the lines of a page that are too long, by number: not those
// of tables, headings, and code.
func longProse(page string) map[int]string {
	long := map[int]string{}
	fenced := false
	for i, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if !fenced && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "    ") && tooLong(line) {
			long[i+1] = line
		}
	}
	return long
}

func TestLongLines(t *testing.T) {
	word := strings.Repeat("w", 40)
	require.Len(t, longComments("// "+word+"\n// "+word+" "+word+"\nx := 1 // "+word+" "+word), 1)
	require.Empty(t, longComments("//\t"+word+" "+word+"\n// Output:\n// "+word+" "+word))
	require.Empty(t, longComments("// "+word+word+word), "one word")
	require.Empty(t, longComments("s := `\n// "+word+" "+word+"\n`"))
	require.Len(t, longProse(word+" "+word+"\n| "+word+" "+word+" |\n```\n"+word+" "+word+"\n```\n"), 1)
}
