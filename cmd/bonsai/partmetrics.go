package main

import "bonsai/resolver/serve"

// frontEndMetrics are what the front end counted beside what its resolver did.
var frontEndMetrics = []metric{
	{"bonsai_frontend_queries_total", "Messages of clients, by what became of them.", counterKind, []string{"transport", "outcome"},
		byTransport(func(f *serve.Flow, emit func(uint64, string)) {
			emit(f.Hits, "hit")
			emit(f.Misses, "miss")
			emit(f.Shed, "shed")
			emit(f.Dropped, "dropped")
		})},
	{"bonsai_frontend_responses_total", "Responses handed to the system.", counterKind, []string{"transport"},
		func(s *snapshot, emit emit) {
			emit(float64(s.serve.UDP.Responses), "udp")
			emit(float64(s.serve.TCP.Responses), "tcp")
		}},
	{"bonsai_receive_errors_total", "Calls on UDP sockets that failed to receive.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.serve.ReadErrors })},
}

// byTransport emits values of UDP and of TCP.
func byTransport(of func(f *serve.Flow, emit func(uint64, string))) func(*snapshot, emit) {
	return func(s *snapshot, emit emit) {
		of(&s.serve.UDP, func(n uint64, label string) { emit(float64(n), "udp", label) })
		of(&s.serve.TCP, func(n uint64, label string) { emit(float64(n), "tcp", label) })
	}
}

// partMetrics are what validation, iteration and the store of denials counted.
var partMetrics = []metric{
	{"bonsai_validations_total", "Responses judged, by status (RFC 4035 §4.3).", counterKind, []string{"status"},
		func(s *snapshot, emit emit) {
			v := &s.parts.Validate
			emit(float64(v.Secure), "secure")
			emit(float64(v.Insecure), "insecure")
			emit(float64(v.Bogus), "bogus")
			emit(float64(v.Indeterminate), "indeterminate")
		}},
	{"bonsai_signatures_total", "Signatures looked at: verified, failed, or known to be good from before.", counterKind, []string{"result"},
		func(s *snapshot, emit emit) {
			v := &s.parts.Validate
			emit(float64(v.Verified), "good")
			emit(float64(v.Failed), "failed")
			emit(float64(v.Remembered), "remembered")
		}},
	{"bonsai_nsec3_hash_blocks_total", "Blocks hashed for names in NSEC3 proofs.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.parts.Validate.Blocks })},
	{"bonsai_iterations_total", "Links resolved by asking servers, by outcome.", counterKind, []string{"outcome"},
		func(s *snapshot, emit emit) {
			it := &s.parts.Iterate
			emit(float64(it.Resolutions-min(it.Failures, it.Resolutions)), "resolved")
			emit(float64(it.Failures), "failed")
		}},
	{"bonsai_referrals_total", "Referrals followed.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.parts.Iterate.Referrals })},
	{"bonsai_lame_responses_total", "Responses that showed a server to be lame.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.parts.Iterate.Lame })},
	{"bonsai_minimised_queries_total", "Queries with less than the whole QNAME (RFC 9156), and those of them that led to asking the whole one.", counterKind,
		[]string{"kind"}, func(s *snapshot, emit emit) {
			emit(float64(s.parts.Iterate.Minimised), "sent")
			emit(float64(s.parts.Iterate.Widened), "widened")
		}},
	{"bonsai_address_lookups_total", "Lookups of name servers' addresses.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.parts.Iterate.Lookups })},
	{"bonsai_primings_total", "Zones primed, the root above all (RFC 9609).", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.parts.Iterate.Primed })},
	{"bonsai_denial_lookups_total", "Names looked for among proven denials (RFC 8198), by what was proven.", counterKind, []string{"result"},
		func(s *snapshot, emit emit) {
			d := &s.parts.Denial
			emit(float64(d.Names), "nxdomain")
			emit(float64(d.Types), "nodata")
			emit(float64(d.Wildcards), "wildcard")
			emit(float64(d.Lookups-min(d.Names+d.Types+d.Wildcards, d.Lookups)), "nothing")
		}},
	{"bonsai_denial_records_total", "Records of proven denials, added and evicted.", counterKind, []string{"change"},
		func(s *snapshot, emit emit) {
			emit(float64(s.parts.Denial.Added), "added")
			emit(float64(s.parts.Denial.Evicted), "evicted")
		}},
	{"bonsai_denial_records", "Records of proven denials that are kept.", gaugeKind, nil,
		plain(func(s *snapshot) int64 { return s.parts.Denial.Records })},
	{"bonsai_denial_zones", "Zones that they are of.", gaugeKind, nil,
		plain(func(s *snapshot) int64 { return s.parts.Denial.Zones })},
	{"bonsai_denial_used_bytes", "Memory that they take.", gaugeKind, nil,
		plain(func(s *snapshot) int64 { return s.parts.Denial.Used })},
	{"bonsai_denial_capacity_bytes", "Memory that they may take.", gaugeKind, nil,
		plain(func(s *snapshot) int64 { return s.parts.Denial.Size })},
}
