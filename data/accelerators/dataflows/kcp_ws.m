// Output channels over clusters of 64, input channels over the elements of a cluster; each element keeps its window of the
// filter while the output is scanned. NVDLA's dataflow: "KC-P" in Kwon et al., MICRO 2019, kcp_ws (also dla) in MAESTRO.
Dataflow {
  SpatialMap(1,1) K;
  TemporalMap(64,64) C;
  TemporalMap(Sz(R),Sz(R)) R;
  TemporalMap(Sz(S),Sz(S)) S;
  TemporalMap(Sz(R),1) Y;
  TemporalMap(Sz(S),1) X;
  Cluster(64, P);
  SpatialMap(1,1) C;
  TemporalMap(Sz(R),1) Y;
  TemporalMap(Sz(S),1) X;
  TemporalMap(Sz(R),Sz(R)) R;
  TemporalMap(Sz(S),Sz(S)) S;
}
