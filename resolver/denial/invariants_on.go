//go:build invariants

package denial

// invariants has every change of a store checked.
const invariants = true
