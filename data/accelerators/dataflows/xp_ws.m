// Output columns over all elements, which hold one window of one filter between them while they scan its output. "X-P" in
// Kwon et al., MICRO 2019, xp_ws in MAESTRO.
Dataflow {
  TemporalMap(1,1) K;
  TemporalMap(1,1) C;
  TemporalMap(Sz(R),1) Y;
  SpatialMap(Sz(S),1) X;
  TemporalMap(Sz(R),Sz(R)) R;
  TemporalMap(Sz(S),Sz(S)) S;
}
