Network g { Layer b { Type: BMM Dimensions { B: 4, M: 10, N: 12, K: 64 }
  Dataflow { TemporalMap(1,1) B; TemporalMap(5,5) M; SpatialMap(1,1) N; TemporalMap(16,16) K; Cluster(16,L); SpatialMap(1,1) K; } } }
