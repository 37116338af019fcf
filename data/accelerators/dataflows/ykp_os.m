// Output rows over clusters of 16, output channels over the elements of a cluster. MAESTRO's ykp_os.
Dataflow {
  TemporalMap(16,16) K;
  SpatialMap(Sz(R),1) Y;
  TemporalMap(Sz(S),1) X;
  TemporalMap(1,1) C;
  Cluster(16, P);
  SpatialMap(1,1) K;
  TemporalMap(Sz(R),1) Y;
  TemporalMap(Sz(S),1) X;
  TemporalMap(Sz(R),Sz(R)) R;
  TemporalMap(Sz(S),Sz(S)) S;
}
