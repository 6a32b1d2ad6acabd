package wire

import "strconv"

// name returns the text of a value in a table, or its kind and number.
func name[T ~uint8 | ~uint16](table []string, v T, kind string) string {
	if int(v) < len(table) && table[v] != "" {
		return table[v]
	}
	return kind + " " + strconv.Itoa(int(v))
}
