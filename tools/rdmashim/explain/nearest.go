package explain

import (
	"cmp"
	"slices"
	"strings"
)

// maxQuestion bounds the work for a senseless question, in bytes.
const maxQuestion = 100

// Nearest returns names that look like the question, the most alike first, at
// most n, of the kind that stands in front; none where nothing is alike, and to
// a number.
func Nearest(question string, n int) (names []string) {
	words, kinds := strings.Fields(question), Kinds[:slices.Index(Kinds, Fault)]
	if len(words) > 1 {
		if k, ok := kindWords[strings.ToLower(words[0])]; ok {
			words, kinds = words[1:], []Kind{k}
		}
	}
	what := strings.Join(words, " ")
	key := normal(what)
	if _, numeric := number(what); numeric || len(key) < 2 || len(key) > maxQuestion {
		return nil
	}
	type near struct {
		name string
		far  int
	}
	var all []near
	for _, k := range kinds {
		for _, e := range lists()[k] {
			far := len(key)
			for _, name := range e.names() {
				far = min(far, apart(key, normal(name)))
			}
			if far <= max(2, len(key)/3) {
				all = append(all, near{e.Name, far})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b near) int { return cmp.Compare(a.far, b.far) })
	for _, x := range all {
		if len(names) < n && !slices.Contains(names, x.name) {
			names = append(names, x.name)
		}
	}
	return names
}

// apart says how different two names are: 1 where one is a part of the other,
// else their Levenshtein distance in bytes.
func apart(a, b string) int {
	if len(a) > 2 && strings.Contains(b, a) {
		return 1
	}
	row := make([]int, len(b)+1) // distances of a's part so far to each part of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
