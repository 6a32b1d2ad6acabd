//go:build plant

package cm

var planted = plantNone

// Plants are the names that Plant takes.
func Plants() []string {
	return []string{"reject-not-replayed", "rtu-not-repeated", "stale-taken", "timewait-for-good", "reply-not-repeated"}
}

// Plant makes this process's managers make a mistake, by its name; "" ends it. It
// reports whether it knows the name. It exists in builds with the tag "plant" only.
func Plant(name string) bool {
	planted = plantNone
	for i, p := range Plants() {
		if p == name {
			planted = plantReject + i
		}
	}
	return name == "" || planted != plantNone
}
